package page

import (
	"context"
	"errors"
	"net/http"

	"github.com/varve-db/varve"
)

// refusal is an error that the page itself returns for a request, with its HTTP status.
type refusal struct {
	status  int
	message string
	next    string
}

func (e *refusal) Error() string { return e.message }

// failure is the template data of an error.
type failure struct {
	Message string
	Next    string // advice for the person who uses the page
}

// remedies lists, for errors, the HTTP status and advice for the person; the first entry that matches is used.
var remedies = []struct {
	err    error
	status int
	next   string
}{
	{varve.ErrReplaced, http.StatusServiceUnavailable,
		"open the document again, then repeat the change; if no store is at its path, restore it from a backup"},
	{varve.ErrMoved, http.StatusServiceUnavailable,
		"start the server again with the folder in which the store is now"},
	{varve.ErrClosed, http.StatusServiceUnavailable, "try again; if it fails again, start the server again"},
	{varve.ErrPurged, http.StatusConflict, "what was purged cannot be brought back"},
	{varve.ErrRedacted, http.StatusConflict,
		"the text of this version was removed on purpose: choose another version"},
	{varve.ErrHistoryGone, http.StatusNotFound, "versions this old are not kept any more"},
	{varve.ErrTruncated, http.StatusNotFound, "versions this old are not kept any more"},
	{varve.ErrConflict, http.StatusConflict, "open the newest version, and repeat the change"},
	{varve.ErrNotFound, http.StatusNotFound, "it may have been deleted meanwhile: see the log of the store"},
	{varve.ErrReadOnly, http.StatusForbidden, "health shows why nothing can be written"},
	{varve.ErrSyncFailed, http.StatusServiceUnavailable,
		"the disk refuses to sync: make a backup on another disk, check this disk, then start the server again"},
	{varve.ErrTooManyFiles, http.StatusServiceUnavailable, "try again; a higher limit (ulimit -n) helps"},
	{varve.ErrPermission, http.StatusForbidden,
		"the user of the server needs the permission to write to the store's folder"},
	{varve.ErrDiskFull, http.StatusInsufficientStorage, "make room on the disk, then repeat; nothing was lost"},
	{varve.ErrLimit, http.StatusConflict, "forget memories, or raise the limit: memctl config set NAME N"},
	{varve.ErrTooLarge, http.StatusRequestEntityTooLarge, "make the document smaller"},
	{varve.ErrLocked, http.StatusConflict, "wait until the other process is done, then repeat"},
	{varve.ErrModel, http.StatusConflict, "search by words, or: memctl reindex"},
	{varve.ErrCorrupt, http.StatusInternalServerError, "see what is damaged with Verify, then: memctl repair"},
	{varve.ErrOutcomeUnknown, http.StatusInternalServerError,
		"the change may have been made or not: look at the newest version"},
	{varve.ErrInvalid, http.StatusBadRequest, "correct it and send it again"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "repeat it with memctl, which has no time limit"},
}

// remedyOf returns the HTTP status for an error, and advice for the person.
func remedyOf(err error) (status int, next string) {
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return refused.status, refused.next
	}
	for _, m := range remedies {
		if errors.Is(err, m.err) {
			return m.status, m.next
		}
	}
	return http.StatusInternalServerError, "see the log of the server, and memctl status"
}

// failed returns the view that shows an error.
func failed(err error) *view {
	status, next := remedyOf(err)
	return &view{template: "error", title: "Error", status: status, data: failure{err.Error(), next}}
}
