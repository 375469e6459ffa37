package cli

import "slices"

// The exit codes; scripts rely on them.
const (
	CodeOK          = 0
	CodeInternal    = 1
	CodeDamage      = 2
	CodeLost        = 3
	CodeNotFound    = 4
	CodeConflict    = 5
	CodeRefused     = 6
	CodeNoStore     = 10
	CodeLocked      = 11
	CodeNewer       = 12
	CodeDiskFull    = 13
	CodePermission  = 14
	codeUsage       = 64
	CodeInterrupted = 130
)

// gravity has the exit codes in the order of their gravity, the gravest first: those for lost data, then for
// failures, then for refusals.
var gravity = [...]int{
	CodeLost, CodeDamage, CodeInternal, CodeDiskFull, CodeNewer, CodePermission, CodeLocked, CodeNoStore,
	CodeInterrupted, CodeConflict, CodeRefused, CodeNotFound, codeUsage, CodeOK,
}

// graver returns the code of the graver failure; see gravity.
func graver(a, b int) int {
	if slices.Index(gravity[:], b) < slices.Index(gravity[:], a) {
		return b
	}
	return a
}

// ExitCode is a row of the table of exit codes.
type ExitCode struct {
	Code int
	Text string
}

// ExitCodes returns the exit codes with their meanings, by number.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{CodeOK, "success"},
		{CodeInternal, "internal error"},
		{CodeDamage, "damage that memctl repair can heal, or damage in a backup that was restored"},
		{CodeLost, "data lost or unreadable"},
		{CodeNotFound, "no such memory, assembly, session or version"},
		{CodeConflict, "conflict: a condition did not hold, or the document was changed meanwhile"},
		{CodeRefused, "refused input, or a limit"},
		{CodeNoStore, "no store, or the store was moved"},
		{CodeLocked, "locked; the message names the holder"},
		{CodeNewer, "store written by a newer version of memctl"},
		{CodeDiskFull, "disk full"},
		{CodePermission, "permission denied, or the store is read-only; the message has the remedy"},
		{codeUsage, "wrong usage"},
		{CodeInterrupted, "interrupted"},
	}
}

// Gravity returns the codes of failures, the gravest first.
func Gravity() []int { return gravity[:len(gravity)-1] }

// Kinds returns all kinds of failures, each once with its exit code. A kind is the value of "kind" in the JSON
// of an error. The remedy is set if all failures of the kind have the same one.
func Kinds() []Failure {
	kinds := []Failure{
		{Kind: "lost", Code: CodeLost}, {Kind: "damage", Code: CodeDamage}, {Kind: "internal", Code: CodeInternal},
	}
	for _, c := range classes {
		same := func(f Failure) bool { return f.Kind == c.kind && f.Code == c.code }
		switch i := slices.IndexFunc(kinds, same); {
		case i < 0:
			kinds = append(kinds, Failure{Kind: c.kind, Code: c.code, Fix: c.fix})
		case kinds[i].Fix != c.fix:
			kinds[i].Fix = "" // there are several: the message has the right one
		}
	}
	slices.SortStableFunc(kinds, func(a, b Failure) int { return a.Code - b.Code })
	return kinds
}
