package errs

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/internal/human"
)

// MissingMembersError reports the members of an assembly that do not exist. It matches ErrNotFound.
type MissingMembersError struct {
	Assembly string   // id of the assembly
	IDs      []string // ids of the missing memories
}

// Error returns the message, in one line.
func (e *MissingMembersError) Error() string {
	const most = 5
	var list []string
	for _, id := range e.IDs[:min(most, len(e.IDs))] {
		list = append(list, human.Quote(id))
	}
	s := strings.Join(list, ", ")
	if n := len(e.IDs) - most; n > 0 {
		s = fmt.Sprintf("%s and %d more", s, n)
	}
	return fmt.Sprintf("no such memory: %s: members must exist unless AllowMissing is given", s)
}

// Unwrap makes the error match ErrNotFound.
func (e *MissingMembersError) Unwrap() error { return ErrNotFound }
