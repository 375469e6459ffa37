package repair

// RepairReport is what Apply did.
type RepairReport struct {
	Done []Done
	// Waiting could not be done because other processes have the store open.
	Waiting   []Action
	Processes []int
	Unsure    []int // those of them that may be dead: they cannot be seen from here
	Elsewhere []int // ids, there, of those of another PID namespace, such as a container
	// Remaining is what verify says now, without the files in quarantine.
	Remaining []Finding
	Summary   Summary
	Worst     Severity // of Remaining
}

// Done is an action that was applied.
type Done struct {
	Action
	Result string // what came of it
	Where  string // where the previous file is now, in the store; "" when there was nothing to keep
	Err    error  // why it could not be done; its subject was left unchanged
}

// PartialKey is the member of metadata that marks a memory that was reconstructed from the readable
// parts of a damaged file; its value is true. An assembly, which has no metadata, has the member
// itself. The damaged file is in quarantine.
const PartialKey = "varve_partial"

// Mention is a file that does not belong to a memory and contains part of one that is purged.
type Mention struct {
	Path string // relative to the store, with slashes
	How  string // what it has: "names it"
}
