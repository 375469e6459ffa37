package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

var ErrForeign = errors.New(`the member "varve" is missing, so this is not a folder of a Varve store`)

// ErrMissing is the error for a store whose config.json existed before and does not exist now.
var ErrMissing = fmt.Errorf("%w: config.json is missing: restore it, or run memctl repair --apply to write a new one",
	errs.ErrInvalid)

// Read reads config.json. The error is ErrForeign for a file of another program, and fs.ErrNotExist if the file is
// missing. If some members are not valid, Read returns the others, and an error that names each invalid one.
func Read(fsys vfs.FS, dir string) (*Config, vfs.Info, error) {
	name := filepath.Join(dir, Name)
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, info, err
	}
	b, err := vfs.ReadFile(fsys, name, Limit)
	if err != nil {
		return nil, info, err
	}
	c, err := Parse(b)
	if err != nil && c == nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return c, info, err
}

// Parse parses the text of a config.json. If some members are not valid, Parse returns the others, and an error that
// names each invalid member. If the text is not a JSON object, the Config is nil and the error matches
// errs.ErrInvalid. If the text lacks the member "varve", the Config is nil and the error is ErrForeign.
func Parse(text []byte) (*Config, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	if _, ok := members["varve"]; !ok {
		return nil, ErrForeign
	}
	c, wrong := new(Config), (*membersError)(nil)
	for _, name := range memberNames() {
		value, ok := members[name]
		if !ok {
			continue
		}
		with := *c
		err := with.setMember(name, value)
		if err == nil {
			err = with.Validate()
		}
		if err == nil {
			*c = with
			continue
		}
		if wrong == nil {
			wrong = new(membersError)
		}
		wrong.names, wrong.errs = append(wrong.names, name), append(wrong.errs, err)
	}
	if wrong != nil {
		return c, wrong
	}
	return c, nil
}

// membersError names the members of config.json that are not valid.
type membersError struct {
	names []string
	errs  []error
}

func (e *membersError) Error() string {
	var text []string
	for _, err := range e.errs {
		text = append(text, err.Error())
	}
	return strings.Join(text, "; ")
}

func (e *membersError) Unwrap() []error { return e.errs }

// Invalid returns the reason why the member of config.json with this name is invalid, according to err, an error of
// Read or Parse. It returns nil if err is not about that member.
func Invalid(err error, name string) error {
	var wrong *membersError
	if !errors.As(err, &wrong) {
		return nil
	}
	for i, n := range wrong.names {
		if n == name {
			return wrong.errs[i]
		}
	}
	return nil
}

// unset returns the name of the first invalid member of config.json that a change would have to set and did not set. A
// change has to set an invalid member if its default would cause data to be removed, and also memory_store, whose id
// the clients of the Memory Stores API know. unset returns "" if there is no such member. err is the error of Read.
// before and after are the settings before and after the change.
func unset(err error, before, after *Config) string {
	var wrong *membersError
	if !errors.As(err, &wrong) {
		return ""
	}
	for _, name := range wrong.names {
		same := false
		switch name {
		case "history_bytes":
			same = before.HistoryBytes == nil && after.HistoryBytes == nil
		case "unsent_bytes":
			same = before.UnsentBytes == nil && after.UnsentBytes == nil
		case "adopt_deletions":
			same = before.AdoptDeletions == nil && after.AdoptDeletions == nil
		case "index_backup_count":
			same = before.IndexBackupCount == nil && after.IndexBackupCount == nil
		case "memory_store": // the clients of the Memory Stores API know the store by its id
			same = before.MemoryStore == nil && after.MemoryStore == nil
		}
		if same {
			return name
		}
	}
	return ""
}

// instead returns the remedy, for an error message, that a user may choose instead of correcting the invalid member of
// config.json with this name: to set the member or, for memory_store, to remove it.
func instead(name string) string {
	if name == "memory_store" {
		return "remove memory_store there"
	}
	return "set " + name
}

// setMember sets the field of c for the member of config.json with this name. value is the member's JSON value. A
// value of the wrong JSON type is a *FieldError.
func (c *Config) setMember(name string, value json.RawMessage) error {
	member, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err == nil {
		err = json.Unmarshal(member, c)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		var short bytes.Buffer
		_ = json.Compact(&short, value)
		err = &errs.FieldError{Field: Name + " " + kind.Field, Value: cutValue(short.String()),
			Err: errors.New("must be " + kindName(kind.Type.Kind()))}
	}
	return err
}

// kindName returns the name, for error messages, of the JSON values that a field of the Go kind k accepts, such as "a
// whole number".
func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list of texts"
	}
	return "an object"
}

func cutValue(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// memberNames returns the JSON names of the fields of Config, in their order.
func memberNames() []string {
	var names []string
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// rebuild is the remedy that messages give if a config.json cannot be read: such a file is not overwritten.
const rebuild = "correct config.json, or run memctl repair --apply to rebuild it"

// Write writes config.json durably. Members that this program does not know stay unchanged. temp is the name of a
// temporary file, which no other process may use.
func Write(fsys vfs.FS, dir, temp string, c *Config, mode fs.FileMode) error {
	name := filepath.Join(dir, Name)
	members := map[string]json.RawMessage{}
	if b, err := vfs.ReadFile(fsys, name, Limit); err == nil {
		if err := json.Unmarshal(b, &members); err != nil {
			return fmt.Errorf("%w: %w: %s", errs.ErrInvalid, err, rebuild)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	for _, name := range memberNames() {
		delete(members, name) // an omitted member has its default
	}
	if err := json.Unmarshal(b, &members); err != nil {
		return err
	}
	if b, err = json.MarshalIndent(members, "", "  "); err != nil {
		return err
	}
	return vfs.WriteDurable(fsys, temp, name, append(b, '\n'), mode)
}
