package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/working"
)

// Error is the error of an operation that failed because of Redis or the connection. The error matches Kind, and all
// errors that Err matches.
type Error struct {
	Op   string // the operation and its scope
	Kind error  // ErrUnavailable, ErrPermission, ErrReadOnly, ErrLimit, ErrOutcomeUnknown or ErrInvalid of package working
	Err  error  // the error of Redis or of the connection
}

func (e *Error) Error() string {
	return fmt.Sprintf("redis: %s: %v: %v", e.Op, e.Kind, e.Err)
}

// Unwrap makes the error match Kind and Err.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// kinds lists beginnings of the server's error replies. For each of them it has the error that the reply matches, and
// the remedy, which may be empty.
var kinds = []struct {
	word string
	kind error
	fix  string
}{
	{"WRONGPASS", errs.ErrPermission, "the user or the password in the URL is wrong"},
	{"NOAUTH", errs.ErrPermission,
		"the server requires a password; put the password into the URL: redis://user:password@host"},
	{"ERR AUTH", errs.ErrPermission, "the server has no password; remove the password from the URL"},
	{"ERR invalid password", errs.ErrPermission, "the password in the URL is wrong"},
	{"NOPERM", errs.ErrPermission,
		"the Redis user lacks permissions; give this user the ACL rules that the Go function redis.ACL returns"},
	{"READONLY", errs.ErrReadOnly, "the server is a replica; use the URL of the primary"},
	{"MISCONF", errs.ErrReadOnly, "the server refuses writes because it cannot save its snapshot"},
	{"NOREPLICAS", errs.ErrReadOnly, "the server refuses writes because it has too few replicas"},
	{"OOM", errs.ErrLimit, "the server has reached its memory limit, maxmemory"},
	{"LOADING", working.ErrUnavailable, "the server is still loading its data"},
	{"BUSY", working.ErrUnavailable, "the server is busy with a script"},
	{"MASTERDOWN", working.ErrUnavailable, ""},
	{"CLUSTERDOWN", working.ErrUnavailable, ""},
	{"TRYAGAIN", working.ErrUnavailable, ""},
	{"MOVED", errs.ErrInvalid, "the server is part of a cluster; add cluster=true to the URL"},
	{"CROSSSLOT", errs.ErrInvalid, ""},
	{"ERR max number of clients", working.ErrUnavailable, ""},
	{"ERR This instance has cluster support disabled", errs.ErrInvalid,
		"the server is not a cluster; remove cluster=true from the URL"},
	{"ERR DB index", errs.ErrInvalid, "the server does not have the database that the URL names"},
}

// failure converts an error of go-redis into an error of this package. writes reports whether the command may change
// data: if the connection broke during such a command, the outcome is unknown.
func failure(op, prefix string, writes bool, err error) error {
	if err == nil {
		return nil
	}
	if reply, ok := errors.AsType[goredis.Error](err); ok && !errors.Is(err, goredis.Nil) {
		return answered(op, prefix, reply)
	}
	switch {
	case errors.Is(err, goredis.ErrClosed):
		return errs.ErrClosed
	case notSent(err):
		return &Error{Op: op, Kind: working.ErrUnavailable, Err: err}
	case writes:
		return &Error{Op: op, Kind: errs.ErrOutcomeUnknown, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("redis: %s: %w", op, err)
	}
	return &Error{Op: op, Kind: working.ErrUnavailable, Err: err}
}

// notSent reports whether the command was never sent, because there was no connection, or no free one in the pool.
func notSent(err error) bool {
	var dial *dialError
	return errors.As(err, &dial) || crowded(err)
}

// crowded reports whether the command failed because all connections of the pool were in use. Redis is available then;
// the program needs a larger pool.
func crowded(err error) bool {
	return errors.Is(err, goredis.ErrPoolTimeout) || errors.Is(err, goredis.ErrPoolExhausted)
}

func answered(op, prefix string, reply error) error {
	text := reply.Error()
	for _, k := range kinds {
		if strings.HasPrefix(text, k.word) {
			if k.fix != "" {
				reply = fmt.Errorf("%w (%s)", reply, k.fix)
			}
			return &Error{Op: op, Kind: k.kind, Err: reply}
		}
	}
	return &Error{Op: op, Kind: errs.ErrInvalid, Err: reply}
}

// refusal returns the error of working memory if err means that a script refused the operation, and otherwise nil.
func refusal(r *working.Request, err error) error {
	text := ""
	if reply, ok := errors.AsType[goredis.Error](err); ok {
		text = reply.Error()
	}
	at := strings.Index(text, "VARVE")
	if at < 0 {
		return nil
	}
	word, rest, _ := strings.Cut(text[at:], " ")
	part := strings.SplitN(rest, " ", 3)
	for len(part) < 3 {
		part = append(part, "")
	}
	switch word {
	case "VARVETYPE":
		return &errs.CorruptionError{Path: part[2], Offset: -1,
			Err: fmt.Errorf("%w: the key has the Redis type %s, not %s: another program wrote it; remove the key, or "+
				"set "+
				"another Options.Prefix", working.ErrWrongType, part[0], part[1])}
	case "VARVECONFLICT":
		return &working.ConflictError{Name: rest}
	case "VARVELIMIT":
		limit, _ := strconv.ParseInt(part[1], 10, 64)
		need, _ := strconv.ParseInt(part[2], 10, 64)
		return &working.LimitError{Scope: r.Scope, What: part[0], Limit: limit, Need: need}
	case "VARVEINTEGER":
		return &errs.FieldError{Field: incremented(r), Value: human.Quote(rest), Err: working.ErrNotInteger}
	case "VARVEOVERFLOW":
		return &errs.FieldError{Field: incremented(r), Value: rest, Err: working.ErrOverflow}
	case "VARVEMISSING":
		return &working.CheckpointError{ID: rest, Err: errs.ErrNotFound}
	case "VARVECORRUPT":
		return &working.CheckpointError{ID: part[0],
			Err: fmt.Errorf("%w: this checkpoint is based on checkpoint %s, which is missing or damaged",
				errs.ErrCorrupt, part[1])}
	}
	return nil
}

func incremented(r *working.Request) string {
	op, _ := r.Op.(working.OpIncrement)
	key, _ := working.UserKey(op.Name)
	return "key " + human.Quote(key)
}
