package working

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

// LogEntry is an entry about a scope in a store's log. It has either the changes of operations, or the whole state of
// the scope. The changes are of operations that State.Judge has judged one after another at the same moment.
type LogEntry struct {
	At      Moment
	Version uint64 // version of the first change; each later change has the next version
	Changes []*Delta
	Fresh   bool   // discard the previous state before the changes are made
	State   *State // the whole state, instead of Changes; nil if the entry has changes
}

type entryJSON struct {
	Time    int64  `json:"time"`
	Tick    int64  `json:"tick"`
	Version uint64 `json:"version"`
	Fresh   bool   `json:"fresh,omitzero"`
}

// Head returns the moment, the version and Fresh of the entry as one line of JSON. The rest of the entry, its changes
// or its state, is encoded separately as the body; see DecodeLogEntry.
func (e *LogEntry) Head() []byte {
	fresh := ""
	if e.Fresh {
		fresh = `,"fresh":true`
	}
	return fmt.Appendf(nil, `{"time":%d,"tick":%d,"version":%d%s}`, e.At.Time, e.At.Tick, e.Version, fresh)
}

// DecodeLogEntry decodes an entry from its head, which Head returned, and its body. The body has either one line of
// Delta.Encode for each change, or the document of a scope.
func DecodeLogEntry(head, body []byte) (*LogEntry, error) {
	var j entryJSON
	if err := json.Unmarshal(head, &j, json.RejectUnknownMembers(true)); err != nil {
		return nil, &errs.FieldError{Field: "head", Err: err}
	}
	e := &LogEntry{At: Moment{Time: j.Time, Tick: j.Tick}, Version: j.Version, Fresh: j.Fresh}
	if len(body) > 0 && body[0] == '{' {
		f, err := DecodeFile(body)
		if err != nil {
			return nil, err
		}
		e.State = f.State
		return e, nil
	}
	if err := checkParts(body); err != nil {
		return nil, jsondoc.InField("changes", err)
	}
	for len(body) > 0 {
		line, rest, ok := bytes.Cut(body, []byte{'\n'})
		if !ok {
			return nil, &errs.FieldError{Field: "changes", Err: errors.New("the last line does not end with a line feed")}
		}
		d, err := DecodeDelta(line)
		if err != nil {
			return nil, err
		}
		e.Changes, body = append(e.Changes, d), rest
	}
	return e, nil
}

// Play applies the entry to s and returns the resulting State. The result may be s itself, changed, or another State.
func (e *LogEntry) Play(s *State) *State {
	if e.State != nil {
		return e.State
	}
	if e.Fresh {
		s = NewState()
	}
	for i, d := range e.Changes {
		s.Play(e.At, e.Version+uint64(i), d)
	}
	return s
}
