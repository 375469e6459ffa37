package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/working"
)

// remedies removes the remedy from f.Message, if the text of the error contains one. It sets f.Fix to a remedy that
// names commands of memctl instead of functions of the library.
func (f *Failure) remedies(err error) {
	drop := func(remedy string) { f.Message = strings.Replace(f.Message, ": "+remedy, "", 1) }
	var (
		conflict *varve.ConflictError
		limit    *errs.LimitError
		scope    *working.LimitError
		missing  *varve.MissingMembersError
	)
	if errors.As(err, &conflict) {
		switch conflict.Remedy {
		case "":
			drop("read the current version and try again")
		default:
			drop(conflict.Remedy)
			f.Fix = conflict.Remedy
		}
	}
	if errors.As(err, &limit) {
		drop(limit.Remedy())
		f.Fix = fmt.Sprintf("delete memories (memctl rm ID), or raise the limit: memctl config set %s N", limit.Setting)
	}
	if errors.As(err, &scope) { // the rest of the text names options of the library
		f.Message, _, _ = strings.Cut(f.Message, "; delete or expire some")
		f.Fix = "delete values that are not needed: memctl working rm KEY"
	}
	if errors.As(err, &missing) {
		drop("members must exist unless AllowMissing is given")
	}
}

// interrupted returns the message of a command that was interrupted: the word interrupted, followed by message without
// the text of the context's error.
func interrupted(message string) string {
	what := context.Canceled.Error()
	for _, s := range []string{": " + what, what + ": ", what} {
		message = strings.Replace(message, s, "", 1)
	}
	switch {
	case message == "":
		return "interrupted"
	case strings.HasPrefix(message, "interrupted"):
		return message
	}
	return "interrupted: " + message
}
