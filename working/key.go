package working

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// MaxKey is the maximum length of a key, in bytes.
const MaxKey = 1024

// Names of items within a scope.
const (
	valuePrefix = 'v' // prefix of a value of the user: v<key>
	taskName    = "t" // name of the task state, a JSON object
	notePrefix  = 'n' // prefix of an entry of the scratchpad, in checkpoints only: n<16 hex digits>
)

// ValueName returns the name of the item for a user's key.
func ValueName(key string) string { return string(valuePrefix) + key }

// TaskName is the name of the item that holds the task state.
const TaskName = taskName

// UserKey returns the user's key in an item's name; false if the item is not a value of the user.
func UserKey(name string) (string, bool) {
	if name == "" || name[0] != valuePrefix {
		return "", false
	}
	return name[1:], true
}

// display returns an item's name for a message.
func display(name string) string {
	if key, ok := UserKey(name); ok {
		return "key " + human.Quote(key)
	}
	if name == taskName {
		return "the task state"
	}
	return human.Quote(name)
}

// checkKey returns an error for an invalid key of a user. Every operation with a key calls it, so that all refuse the
// same keys.
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
