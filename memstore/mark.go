package memstore

// TakeOverID is the memory that records that a memory file of the MCP reference server was taken
// over into this store. Without it the file is taken over again, and memories that were deleted
// since are restored: so neither a limit nor max_age ever deletes it.
const TakeOverID = "import:server-memory"
