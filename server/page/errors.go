package page

import (
	"context"
	"errors"
	"net/http"

	"github.com/varve-db/varve"
)

// refusal is an error that the page itself causes, not the store. It has the HTTP status of the answer.
type refusal struct {
	status  int
	message string
	next    string
}

func (e *refusal) Error() string { return e.message }

// failure is the template data of the view that shows an error.
type failure struct {
	Message string
	Next    string // advice for the person who uses the page
}

// remedies lists the HTTP status and the advice for the person for each kind of error. For an error that matches
// several entries, the first one is used.
var remedies = []struct {
	err    error
	status int
	next   string
}{
	{varve.ErrReplaced, http.StatusServiceUnavailable,
		"open the document again, then repeat the change; if the store's folder is missing, restore the store from a " +
			"backup"},
	{varve.ErrMoved, http.StatusServiceUnavailable,
		"start the server again with the new path of the store"},
	{varve.ErrClosed, http.StatusServiceUnavailable, "try again; if it fails again, start the server again"},
	{varve.ErrPurged, http.StatusConflict, "purged data cannot be restored"},
	{varve.ErrRedacted, http.StatusConflict,
		"the text of this version was removed on purpose: choose another version"},
	{varve.ErrHistoryGone, http.StatusNotFound, "the store does not keep such old versions any more"},
	{varve.ErrTruncated, http.StatusNotFound, "the store does not keep such old versions any more"},
	{varve.ErrConflict, http.StatusConflict, "open the newest version, then repeat the change"},
	{varve.ErrNotFound, http.StatusNotFound,
		"the document may have been deleted since the page was loaded: see the log of the store"},
	{varve.ErrReadOnly, http.StatusForbidden, "open Health to see why the store cannot be written"},
	{varve.ErrSyncFailed, http.StatusServiceUnavailable,
		"the disk failed to store data: make a backup on another disk, check this disk, then start the server again"},
	{varve.ErrTooManyFiles, http.StatusServiceUnavailable, "try again; a higher limit (ulimit -n) helps"},
	{varve.ErrPermission, http.StatusForbidden,
		"give the user that runs the server permission to write to the store's folder"},
	{varve.ErrDiskFull, http.StatusInsufficientStorage,
		"free space on the disk, then repeat the change; nothing was lost"},
	{varve.ErrLimit, http.StatusConflict, "forget memories, or raise the limit: memctl config set NAME N"},
	{varve.ErrTooLarge, http.StatusRequestEntityTooLarge, "make the document smaller"},
	{varve.ErrLocked, http.StatusConflict, "wait until the other process has finished, then try again"},
	{varve.ErrModel, http.StatusConflict, "search by words, or run: memctl reindex"},
	{varve.ErrCorrupt, http.StatusInternalServerError, "open Verify to see what is damaged, then run: memctl repair"},
	{varve.ErrOutcomeUnknown, http.StatusInternalServerError,
		"the outcome of the change is unknown: look at the newest version"},
	{varve.ErrInvalid, http.StatusBadRequest, "correct the input, then try again"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "use memctl instead, which has no time limit"},
}

// remedyOf returns the HTTP status for an error, and advice for the person who uses the page.
func remedyOf(err error) (status int, next string) {
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return refused.status, refused.next
	}
	for _, m := range remedies {
		if errors.Is(err, m.err) {
			return m.status, m.next
		}
	}
	return http.StatusInternalServerError, "see the log of the server, and run memctl status"
}

// failed returns the view that shows an error, with the status and the advice of remedyOf.
func failed(err error) *view {
	status, next := remedyOf(err)
	return &view{template: "error", title: "Error", status: status, data: failure{err.Error(), next}}
}
