package memstore

// TakeOverID is the id of a memory that marks a take-over: it records that a memory file of the MCP reference server
// was imported into this store. Without the mark the file would be imported again, and memories that were deleted
// since would return. So neither a limit nor max_age ever deletes it.
const TakeOverID = "import:server-memory"
