package memstore

// TakeOverID is the memory that says that a memory file of the MCP reference server was
// taken over into this store. Without it the file is taken over again, and what was
// deleted since comes back: so neither a limit nor max_age ever takes it.
const TakeOverID = "import:server-memory"
