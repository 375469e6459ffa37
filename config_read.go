package varve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/vfs"
)

var errNoMember = errors.New(`it has no member "varve", so this folder is somebody else's`)

// readConfig reads config.json. A file of somebody else is errNoMember, a missing one
// fs.ErrNotExist. When members are not valid it gives the others, and an error that
// names each.
func readConfig(fsys vfs.FS, dir string) (*Config, vfs.Info, error) {
	name := filepath.Join(dir, configName)
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, info, err
	}
	b, err := vfs.ReadFile(fsys, name, configLimit)
	if err != nil {
		return nil, info, err
	}
	c, err := parseConfig(b)
	if err != nil && c == nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return c, info, err
}

// parseConfig reads the text of a config.json; see readConfig. It gives no Config where
// it is not one at all.
func parseConfig(text []byte) (*Config, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrInvalid, err)
	}
	if _, ok := members["varve"]; !ok {
		return nil, errNoMember
	}
	c, wrong := new(Config), error(nil)
	for _, name := range configMembers() {
		value, ok := members[name]
		if !ok {
			continue
		}
		with := *c
		err := with.setMember(name, value)
		if err == nil {
			err = with.Validate()
		}
		switch {
		case err == nil:
			*c = with
		case wrong == nil:
			wrong = err
		default:
			wrong = fmt.Errorf("%w; %w", wrong, err)
		}
	}
	return c, wrong
}

// setMember gives one member the value that stands in the file.
func (c *Config) setMember(name string, value json.RawMessage) error {
	member, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err == nil {
		err = json.Unmarshal(member, c)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		var short bytes.Buffer
		_ = json.Compact(&short, value)
		err = &errs.FieldError{Field: configName + " " + kind.Field, Value: cutValue(short.String()), Err: errors.New("it must be " + kindName(kind.Type.Kind()))}
	}
	return err
}

// kindName says what JSON has for a kind of Go.
func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	}
	return "an object"
}

func cutValue(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// configMembers are the names of the members of Config, in their order.
func configMembers() []string {
	var names []string
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
