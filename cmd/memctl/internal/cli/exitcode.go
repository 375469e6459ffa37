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

// gravity orders the codes from the gravest: what is lost comes before what
// went wrong around it, and that before what was merely refused.
var gravity = [...]int{
	CodeLost, CodeDamage, CodeInternal, CodeDiskFull, CodeNewer, CodePermission, CodeLocked, CodeNoStore,
	CodeInterrupted, CodeConflict, CodeRefused, CodeNotFound, codeUsage, CodeOK,
}

// graver is the graver of two codes.
func graver(a, b int) int {
	if slices.Index(gravity[:], b) < slices.Index(gravity[:], a) {
		return b
	}
	return a
}

// exitStatus is part of every help.
const exitStatus = `EXIT STATUS
  0  success                               11  locked; the message names the holder
  1  internal error                        12  written by a newer version
  2  damage that memctl repair can heal    13  disk full
  3  data lost or unreadable               14  permission; the message has the remedy
  4  no such memory or assembly            64  wrong usage
  5  conflict: changed meanwhile          130  interrupted
  6  refused input, or a limit             Of several errors the gravest counts; it is
 10  no store, or it was moved                  "error" in the document of --json.
`
