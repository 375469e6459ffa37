package repair

// RepairReport is the result of RepairPlan.Apply.
type RepairReport struct {
	Done []Done
	// Waiting are actions that could not be done because other processes have the store open.
	Waiting   []Action
	Processes []int
	Unsure    []int // those of Processes that may have ended already, which this process cannot determine
	Elsewhere []int // ids of processes in another PID namespace, such as a container; they are ids in that namespace
	// Remaining are the findings of the verification after the repair, except those about files in quarantine.
	Remaining []Finding
	Summary   Summary
	Worst     Severity // the worst severity in Remaining
}

// Done is a repair action that was carried out, with its result.
type Done struct {
	Action
	Result string // description of the result
	Where  string // path in the store at which the previous file was kept; "" if there was no previous file
	Err    error  // error of the action; the file at Path is unchanged then
}

// PartialKey is the name of a member in the metadata of a memory. If its value is true, the memory was reconstructed
// from the readable parts of a damaged file, which is in quarantine/. An assembly has no metadata, so it has this
// member at the top level.
const PartialKey = "varve_partial"

// Mention is a file that contains a part of a purged memory's text but does not belong to that memory.
type Mention struct {
	Path string // relative to the store, with slashes
	How  string // what the file contains, such as "contains the purged id"
}
