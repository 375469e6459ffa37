package memorytool

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// input is the decoded input of a call. A member that is null counts as absent.
type input struct {
	Command    string   `json:"command"`
	Path       *string  `json:"path"`
	ViewRange  *lines   `json:"view_range"`
	FileText   *string  `json:"file_text"`
	OldStr     *string  `json:"old_str"`
	NewStr     *string  `json:"new_str"`
	InsertLine *integer `json:"insert_line"`
	InsertText *string  `json:"insert_text"`
	OldPath    *string  `json:"old_path"`
	NewPath    *string  `json:"new_path"`
}

// required are the parameters that each command must have.
var required = map[string][]string{
	"view":        {"path"},
	"create":      {"path", "file_text"},
	"str_replace": {"path", "old_str"},
	"insert":      {"path", "insert_line", "insert_text"},
	"delete":      {"path"},
	"rename":      {"old_path", "new_path"},
}

const commands = "view, create, str_replace, insert, delete, rename"

func parse(data []byte) (*input, error) {
	in := &input{}
	if err := json.Unmarshal(data, in); err != nil {
		return nil, &refused{text: errorPrefix + "Invalid input: " + err.Error()}
	}
	names, ok := required[in.Command]
	if !ok {
		return nil, &refused{text: fmt.Sprintf("%sUnknown command `%s`. The commands are: %s", errorPrefix, in.Command,
			commands)}
	}
	has := map[string]bool{"path": in.Path != nil, "file_text": in.FileText != nil, "old_str": in.OldStr != nil,
		"insert_line": in.InsertLine != nil, "insert_text": in.InsertText != nil, "old_path": in.OldPath != nil,
		"new_path": in.NewPath != nil}
	for _, name := range names {
		if !has[name] {
			return nil, &refused{text: fmt.Sprintf("%sMissing `%s` parameter of the command %s", errorPrefix, name, in.Command)}
		}
	}
	return in, nil
}

// integer is a parameter that is an integer. It may also be given as a string, because models sometimes write integers
// as strings.
type integer int

func (n *integer) UnmarshalJSON(data []byte) error {
	var v float64
	if err := unquoted(data, &v); err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		return fmt.Errorf("%s is not an integer", data)
	}
	*n = integer(v)
	return nil
}

// lines is the parameter view_range: the first line and the last line; -1 as the last line means the end.
type lines struct{ first, last int }

func (l *lines) UnmarshalJSON(data []byte) error {
	var list []integer
	if err := unquoted(data, &list); err != nil || len(list) != 2 {
		return fmt.Errorf("view_range %s is not an array of two integers", data)
	}
	l.first, l.last = int(list[0]), int(list[1])
	return nil
}

// unquoted decodes the JSON value in data into v. If data is a JSON string, unquoted decodes the JSON text in that
// string instead: models also write numbers as strings.
func unquoted(data []byte, v any) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		data = []byte(strings.TrimSpace(s))
	}
	return json.Unmarshal(data, v)
}
