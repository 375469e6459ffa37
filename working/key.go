package working

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// MaxKey is the longest key, in bytes.
const MaxKey = 1024

// Names of items within a scope, as homes know them.
const (
	valuePrefix = 'v' // v<key>: a value of the user
	taskName    = "t" // the task state, a JSON object
	notePrefix  = 'n' // n<16 hex digits>: an entry of the scratchpad, in checkpoints only
)

// ValueName is the name of the item that holds a user's key.
func ValueName(key string) string { return string(valuePrefix) + key }

// TaskName is the name of the item that holds the task state.
const TaskName = taskName

// UserKey gives the user's key of an item's name; false if it is none.
func UserKey(name string) (string, bool) {
	if name == "" || name[0] != valuePrefix {
		return "", false
	}
	return name[1:], true
}

// display is an item's name for a message.
func display(name string) string {
	if key, ok := UserKey(name); ok {
		return "key " + human.Quote(key)
	}
	if name == taskName {
		return "the task state"
	}
	return human.Quote(name)
}

// checkKey is asked by every operation that takes a key, so that what one
// forbids no other one shows.
func checkKey(key string) error {
	switch {
	case key == "":
		return &errs.FieldError{Field: "key", Limit: fmt.Sprintf("1 to %d bytes", MaxKey),
			Err: errors.New("a key must not be empty")}
	case strings.HasPrefix(key, "_"):
		return &errs.FieldError{Field: "key", Value: human.Quote(key), Err: ErrReserved}
	}
	return checkText("key", key, MaxKey)
}
