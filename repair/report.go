package repair

// RepairReport is the result of Apply.
type RepairReport struct {
	Done []Done
	// Waiting are actions that could not be done because other processes have the store open.
	Waiting   []Action
	Processes []int
	Unsure    []int // those of Processes that may have ended: this process cannot see them
	Elsewhere []int // ids of processes in another PID namespace, such as a container, as they are there
	// Remaining are the findings of verify after the repair, without the files in quarantine.
	Remaining []Finding
	Summary   Summary
	Worst     Severity // the worst severity in Remaining
}

// Done is an action that was applied.
type Done struct {
	Action
	Result string // a description of the result
	Where  string // where the previous file is now, in the store; "" if there was none to keep
	Err    error  // why the action failed; its target was left unchanged
}

// PartialKey is the member of metadata that marks a memory that was reconstructed from the readable
// parts of a damaged file; its value is true. An assembly, which has no metadata, has the member
// itself. The damaged file is in quarantine.
const PartialKey = "varve_partial"

// Mention is a file that does not belong to a purged memory and contains a part of it.
type Mention struct {
	Path string // relative to the store, with slashes
	How  string // what the file has, such as "contains the purged id"
}
