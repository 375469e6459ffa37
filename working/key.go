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

// ValueName returns the name of the item that contains the value of a user's key.
func ValueName(key string) string { return string(valuePrefix) + key }

// TaskName is the name of the item that contains the task state.
const TaskName = taskName

// UserKey returns the user's key of the item with the given name. It returns false if the item is not a value of the
// user.
func UserKey(name string) (string, bool) {
	if name == "" || name[0] != valuePrefix {
		return "", false
	}
	return name[1:], true
}

// display returns a text for messages that names an item: the user's key in quotes, "the task state", or any other
// name in quotes.
func display(name string) string {
	if key, ok := UserKey(name); ok {
		return "key " + human.Quote(key)
	}
	if name == taskName {
		return "the task state"
	}
	return human.Quote(name)
}

// checkKey returns an error if a user's key is invalid. Every operation with a key calls checkKey, so all operations
// accept the same keys.
func checkKey(key string) error {
	switch {
	case key == "":
		return &errs.FieldError{Field: "key", Limit: fmt.Sprintf("1 to %d bytes", MaxKey),
			Err: errors.New("the key is empty")}
	case strings.HasPrefix(key, "_"):
		return &errs.FieldError{Field: "key", Value: human.Quote(key), Err: ErrReserved}
	}
	return checkText("key", key, MaxKey)
}
