package working

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
)

// The JSON form of the document of a scope; the package comment shows it. Ticks in a document are Unix milliseconds, so
// a home that writes documents must use such ticks.
type (
	stateJSON struct {
		Scope       string               `json:"scope"`
		Created     micros               `json:"created_at"`
		Version     uint64               `json:"version"`
		Tick        ticks                `json:"lifetimes_at,omitzero"`
		Values      map[string]*cellJSON `json:"values"`
		Task        *cellJSON            `json:"task,omitempty"`
		Notes       []noteJSON           `json:"scratchpad"`
		Checkpoints []markJSON           `json:"checkpoints"`
		Dirty       *dirtyJSON           `json:"changed_since,omitempty"`
	}
	cellJSON struct {
		Value   jsontext.Value `json:"value"`
		Version uint64         `json:"version"`
		Updated micros         `json:"updated_at"`
		Expires ticks          `json:"expires_at,omitzero"`
	}
	noteJSON struct {
		Seq  uint64 `json:"seq"`
		Text string `json:"content"`
		Time micros `json:"timestamp"`
	}
	markJSON struct {
		ID          string               `json:"id"`
		Description string               `json:"description"`
		Created     micros               `json:"created_at"`
		Tick        ticks                `json:"lifetimes_at"`
		Keys        int                  `json:"keys"`
		Entries     int                  `json:"entries"`
		Values      map[string]*cellJSON `json:"values"` // the values; null: the value was removed
		Task        *cellJSON            `json:"task,omitempty"`
		TaskGone    bool                 `json:"task_gone,omitempty"`
		Notes       []noteJSON           `json:"scratchpad"`
		NotesGone   []uint64             `json:"scratchpad_gone,omitempty"`
	}
	dirtyJSON struct {
		Keys  []string `json:"keys,omitempty"`
		Task  bool     `json:"task,omitempty"`
		Notes []uint64 `json:"scratchpad,omitempty"`
	}
)

// micros is a time in Unix microseconds, and ticks is a time in Unix milliseconds. In JSON both are in RFC 3339.
type (
	micros int64
	ticks  int64
)

// MarshalJSON returns the time in RFC 3339.
func (t micros) MarshalJSON() ([]byte, error) {
	return jsondoc.AppendTime(nil, time.UnixMicro(int64(t))), nil
}

// UnmarshalJSON parses a time as jsondoc.DecodeTime does.
func (t *micros) UnmarshalJSON(raw []byte) error {
	at, err := jsondoc.DecodeTime(raw, nil)
	*t = micros(at.UnixMicro())
	return err
}

// MarshalJSON returns the time in RFC 3339, or as a number if it is after the year 9999.
func (t ticks) MarshalJSON() ([]byte, error) {
	at := time.UnixMilli(int64(t))
	if jsondoc.CheckTime(at) != nil {
		return fmt.Appendf(nil, "%d", int64(t)), nil
	}
	return jsondoc.AppendTime(nil, at), nil
}

// UnmarshalJSON parses a time in RFC 3339 or a number.
func (t *ticks) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] != '"' {
		return json.Unmarshal(raw, (*int64)(t))
	}
	at, err := jsondoc.DecodeTime(raw, nil)
	*t = ticks(at.UnixMilli())
	return err
}

// Encode returns the document of a scope: JSON with an indent of 2 and sorted names.
func (s *State) Encode(scope Scope) ([]byte, error) {
	f := stateJSON{Scope: scope.Key(), Created: micros(s.created), Version: s.version, Tick: ticks(s.tick),
		Values: map[string]*cellJSON{},
		Notes:  []noteJSON{}, Checkpoints: []markJSON{}}
	for name, it := range s.items {
		if key, ok := UserKey(name); ok {
			f.Values[key] = it.cell.json()
		} else if name == taskName {
			f.Task = it.cell.json()
		}
	}
	for i := range s.notes {
		f.Notes = append(f.Notes, s.notes[i].json())
	}
	for _, m := range s.marks {
		f.Checkpoints = append(f.Checkpoints, m.json())
	}
	if len(s.marks) > 0 {
		f.Dirty = dirtyNames(s.dirty)
	}
	out, err := json.Marshal(&f, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("working: encoding the document of %s: %w", scope.Key(), err)
	}
	return append(out, '\n'), nil
}

func (c *cell) json() *cellJSON {
	return &cellJSON{Value: jsontext.Value(c.value), Version: c.version, Updated: micros(c.updated),
		Expires: ticks(c.deadline)}
}

func (n *note) json() noteJSON { return noteJSON{Seq: n.seq, Text: n.text, Time: micros(n.time)} }

func (m *mark) json() markJSON {
	j := markJSON{ID: m.id, Description: m.description, Created: micros(m.time), Tick: ticks(m.tick), Keys: m.keys,
		Entries: m.notes,
		Values:  map[string]*cellJSON{}, Notes: []noteJSON{}}
	for _, name := range slices.Sorted(maps.Keys(m.cells)) {
		c := m.cells[name]
		switch key, user := UserKey(name); {
		case user && c == nil:
			j.Values[key] = nil
		case user:
			j.Values[key] = c.json()
		case name == taskName && c == nil:
			j.TaskGone = true
		case name == taskName:
			j.Task = c.json()
		case c == nil:
			j.NotesGone = append(j.NotesGone, noteSeq(name))
		default:
			j.Notes = append(j.Notes, noteJSON{Seq: c.version, Text: string(c.value), Time: micros(c.updated)})
		}
	}
	return j
}

func dirtyNames(dirty map[string]struct{}) *dirtyJSON {
	var j dirtyJSON
	for _, name := range slices.Sorted(maps.Keys(dirty)) {
		switch key, user := UserKey(name); {
		case user:
			j.Keys = append(j.Keys, key)
		case name == taskName:
			j.Task = true
		default:
			j.Notes = append(j.Notes, noteSeq(name))
		}
	}
	return &j
}

// DecodeState decodes the document of a scope. If the document is invalid, the error matches ErrInvalid and names the
// invalid member.
func DecodeState(doc []byte) (*State, Scope, error) {
	var f stateJSON
	bad := func(field string, err error) (*State, Scope, error) {
		return nil, Scope{}, &errs.FieldError{Field: field, Err: err}
	}
	if err := jsondoc.CheckDepth(doc, 0, jsondoc.MaxDepth+8); err != nil {
		return bad("document", err)
	}
	if err := checkParts(doc); err != nil {
		return bad("document", err)
	}
	if err := json.Unmarshal(doc, &f); err != nil {
		return bad("document", err)
	}
	scope, err := ParseScope(f.Scope)
	if err != nil {
		return bad("scope", err)
	}
	s := NewState()
	s.created = int64(f.Created)
	for _, key := range byVersion(f.Values) {
		if err := s.read(ValueName(key), key, f.Values[key], f.Version); err != nil {
			return bad("values", err)
		}
	}
	if f.Task != nil {
		if err := s.read(taskName, "task", f.Task, f.Version); err != nil {
			return bad("task", err)
		}
	}
	if s.notes, err = decodeNotes(f.Notes, f.Version); err != nil {
		return bad("scratchpad", err)
	}
	for i := range f.Checkpoints {
		m, err := f.Checkpoints[i].decode(f.Version)
		if err == nil && s.indexMark(m.id) >= 0 {
			err = errors.New("another checkpoint has the same id")
		}
		if err != nil {
			return bad(fmt.Sprintf("checkpoints[%d]", i), err)
		}
		s.marks = append(s.marks, m)
	}
	if len(s.marks) > 0 {
		s.dirty = map[string]struct{}{}
		if f.Dirty == nil {
			return bad("changed_since", errors.New("the member is missing, but the next checkpoint cannot be made "+
				"without this member"))
		}
		f.Dirty.forEachName(s.soil)
	}
	s.version, s.tick = f.Version, int64(f.Tick)
	return s, scope, nil
}

// byVersion returns the keys in the order in which their values were written. The document does not have the order of
// last use; this order is the best approximation.
func byVersion(values map[string]*cellJSON) []string {
	keys := slices.Sorted(maps.Keys(values))
	slices.SortStableFunc(keys, func(a, b string) int {
		x, y := values[a], values[b]
		if x == nil || y == nil || x.Version == y.Version {
			return 0
		}
		if x.Version < y.Version {
			return -1
		}
		return 1
	})
	return keys
}

func (s *State) read(name, field string, j *cellJSON, version uint64) error {
	if j == nil {
		return fmt.Errorf("%s: the value is missing", human.Quote(field))
	}
	c, err := j.decode(version)
	if err == nil && isUser(name) {
		err = checkKey(name[1:])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", human.Quote(field), err)
	}
	s.put(name, *c)
	return nil
}

func (j *cellJSON) decode(version uint64) (*cell, error) {
	if len(j.Value) == 0 {
		return nil, errors.New("the member value is missing")
	}
	if j.Version > version {
		return nil, fmt.Errorf("version %d of the value is higher than version %d of the document that contains it",
			j.Version, version)
	}
	value := slices.Clone(j.Value)
	if err := value.Compact(); err != nil {
		return nil, err
	}
	return &cell{value: value, version: j.Version, updated: int64(j.Updated), deadline: int64(j.Expires)}, nil
}

func decodeNotes(list []noteJSON, version uint64) ([]note, error) {
	var notes []note
	for i, n := range list {
		if n.Seq > version || i > 0 && n.Seq <= list[i-1].Seq {
			return nil, fmt.Errorf("entry %d has seq %d: seq must be higher than in the previous entry, and not "+
				"higher than the document's version", i, n.Seq)
		}
		notes = append(notes, note{seq: n.Seq, text: n.Text, time: int64(n.Time)})
	}
	return notes, nil
}

func (j *markJSON) decode(version uint64) (*mark, error) {
	m := &mark{id: j.ID, description: j.Description, time: int64(j.Created), tick: int64(j.Tick), keys: j.Keys,
		notes: j.Entries, cells: map[string]*cell{}}
	if err := checkCheckpoint(j.ID); err != nil {
		return nil, err
	}
	for key, v := range j.Values {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		m.cells[ValueName(key)] = nil
		if v != nil {
			c, err := v.decode(version)
			if err != nil {
				return nil, fmt.Errorf("values %s: %w", human.Quote(key), err)
			}
			m.cells[ValueName(key)] = c
		}
	}
	if j.TaskGone {
		m.cells[taskName] = nil
	} else if j.Task != nil {
		c, err := j.Task.decode(version)
		if err != nil {
			return nil, fmt.Errorf("task: %w", err)
		}
		m.cells[taskName] = c
	}
	for _, seq := range j.NotesGone {
		m.cells[noteName(seq)] = nil
	}
	notes, err := decodeNotes(j.Notes, version)
	for i := range notes {
		m.cells[noteName(notes[i].seq)] = notes[i].cell()
	}
	return m, err
}

func (j *dirtyJSON) forEachName(soil func(string)) {
	for _, key := range j.Keys {
		soil(ValueName(key))
	}
	if j.Task {
		soil(taskName)
	}
	for _, seq := range j.Notes {
		soil(noteName(seq))
	}
}
