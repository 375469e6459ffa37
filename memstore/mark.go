package memstore

// TakeOverID is the id of the memory that records that a memory file of the MCP reference server was
// taken over into this store. Without it the file would be taken over again, and memories that were
// deleted since would return: so neither a limit nor max_age ever deletes it.
const TakeOverID = "import:server-memory"
