package page

import (
	"context"
	"errors"
	"net/http"

	"github.com/varve-db/varve"
)

// refusal is an error that the page itself has.
type refusal struct {
	status  int
	message string
	next    string
}

func (e *refusal) Error() string { return e.message }

// failure is an error as it is shown.
type failure struct {
	Message string
	Next    string // what to do
}

func asError[T error](err error, target *T) bool { return errors.As(err, target) }

// remedies are what to do about errors, the first that matches.
var remedies = []struct {
	err    error
	status int
	next   string
}{
	{varve.ErrReplaced, http.StatusServiceUnavailable,
		"start the server again, so that it opens the store that is in this place now"},
	{varve.ErrMoved, http.StatusServiceUnavailable,
		"start the server again with the folder in which the store is now"},
	{varve.ErrClosed, http.StatusServiceUnavailable, "the server is ending: start it again"},
	{varve.ErrPurged, http.StatusConflict, "what was purged cannot be brought back"},
	{varve.ErrRedacted, http.StatusConflict,
		"the text of this version was removed on purpose: choose another version"},
	{varve.ErrHistoryGone, http.StatusNotFound, "versions this old are not kept any more"},
	{varve.ErrTruncated, http.StatusNotFound, "versions this old are not kept any more"},
	{varve.ErrConflict, http.StatusConflict, "look at the newest version, and repeat the change"},
	{varve.ErrNotFound, http.StatusNotFound, "it may have been deleted meanwhile: look into the log"},
	{varve.ErrReadOnly, http.StatusForbidden, "health shows why nothing can be written"},
	{varve.ErrPermission, http.StatusForbidden,
		"the user of the server needs the permission to write to the store's folder"},
	{varve.ErrDiskFull, http.StatusInsufficientStorage, "make room on the disk, then repeat; nothing was lost"},
	{varve.ErrLimit, http.StatusConflict, "forget memories, or raise the limit: memctl config set NAME N"},
	{varve.ErrTooLarge, http.StatusRequestEntityTooLarge, "make it smaller"},
	{varve.ErrLocked, http.StatusConflict, "wait until the other process is done, then repeat"},
	{varve.ErrModel, http.StatusConflict, "search by words, or: memctl reindex"},
	{varve.ErrCorrupt, http.StatusInternalServerError, "see what is damaged with Verify, then: memctl repair"},
	{varve.ErrOutcomeUnknown, http.StatusInternalServerError,
		"the change may have been made or not: look at the newest version"},
	{varve.ErrInvalid, http.StatusBadRequest, "correct it and send it again"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "memctl has no limit of time"},
}

// failed returns the view of an error.
func (p *Page) failed(r *request, err error) *view {
	v := &view{template: "error", title: "Error", status: http.StatusInternalServerError}
	f := failure{Message: err.Error(), Next: "see the log of the server, and memctl status"}
	refused := (*refusal)(nil)
	if errors.As(err, &refused) {
		v.status, f.Next = refused.status, refused.next
		v.data = f
		return v
	}
	for _, m := range remedies {
		if errors.Is(err, m.err) {
			v.status, f.Next = m.status, m.next
			break
		}
	}
	v.data = f
	return v
}
