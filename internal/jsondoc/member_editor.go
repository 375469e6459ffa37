package jsondoc

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// MemberEditor writes a changed document over the text from which the document was decoded. It compares every member
// with the member's text, and writes only members that differ. If a member is null or absent, the zero value leaves it
// unchanged.
type MemberEditor struct {
	source *Object
	doc    *Object
	order  func() []string
	depth  int
	err    error
}

// NewMemberEditor returns an editor of the text of source. It does not modify source. order returns the order of
// members, which determines the places of new members (see Object.Set). depth is the maximum nesting of the document.
func NewMemberEditor(source *Object, order func() []string, depth int) MemberEditor {
	return MemberEditor{source: source, doc: source.Clone(), order: order, depth: depth}
}

// Document returns the new text, or the first error that an earlier call has met; the error names the member. whole is
// the name of the whole document in errors.
func (e *MemberEditor) Document(whole string) ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	size := 8
	for _, member := range e.doc.Members() {
		size += len(member.Name) + len(member.Value) + 16
	}
	doc := e.doc.AppendDocument(make([]byte, 0, size))
	// Kept members may have been read under a higher limit.
	if err := checkShape(doc, 0, e.depth, MostMembers); err != nil {
		return nil, InField(whole, err)
	}
	return doc, nil
}

// Kept reports whether a member exists and still has its original text.
func (e *MemberEditor) Kept(name string) bool {
	before, was := e.source.Get(name)
	after, is := e.doc.Get(name)
	return was && is && bytes.Equal(before, after)
}

// Remove removes a member.
func (e *MemberEditor) Remove(name string) { e.doc.Remove(name) }

func (e *MemberEditor) set(name string, value []byte, err error) {
	if err != nil {
		if e.err == nil {
			e.err = InField(name, err)
		}
		return
	}
	e.doc.Set(name, value, e.order())
}

// blank reports whether a member is absent or null.
func (e *MemberEditor) blank(name string) bool {
	raw, ok := e.doc.Get(name)
	return !ok || raw[0] == 'n'
}

// Text sets a member to a string. If s is "", it leaves a missing or null member unchanged.
func (e *MemberEditor) Text(name, s string) {
	if s == "" && e.blank(name) {
		return
	}
	if raw, ok := e.doc.Get(name); ok && EqualString(raw, s) {
		return
	}
	value, err := AppendString(nil, s)
	e.set(name, value, err)
}

// Floats sets a member to a vector. If the vector is nil, Floats removes the member.
func (e *MemberEditor) Floats(name string, list []float32) {
	if list == nil {
		if !e.blank(name) {
			e.doc.Remove(name)
		}
		return
	}
	if raw, ok := e.doc.Get(name); ok && EqualFloats(raw, list) {
		return
	}
	value, err := AppendFloats(nil, list, 1)
	e.set(name, value, err)
}

// Time sets a member to a time. If the member has the same time in another form, its text is normalised. The zero time
// removes the member.
func (e *MemberEditor) Time(name string, t time.Time) {
	raw, ok := e.doc.Get(name)
	if ok && NormalTime(raw) {
		if old, err := DecodeTime(raw, nil); err == nil && old.Equal(t) {
			return
		}
	}
	if !t.IsZero() {
		e.set(name, AppendTime(nil, t), nil)
	} else if !e.blank(name) {
		e.doc.Remove(name)
	}
}

// Float sets a member to a number. If f is 0, it leaves a missing or null member unchanged.
func (e *MemberEditor) Float(name string, f float64) {
	if f == 0 && e.blank(name) {
		return
	}
	if raw, ok := e.doc.Get(name); ok {
		if old, err := DecodeFloat(raw); err == nil && old == f {
			return
		}
	}
	value, err := AppendFloat(nil, f, 64)
	e.set(name, value, err)
}

// Count sets a member to a whole number. If n is 0, it leaves a missing or null member unchanged.
func (e *MemberEditor) Count(name string, n int64) {
	if n == 0 && e.blank(name) {
		return
	}
	if raw, ok := e.doc.Get(name); ok {
		if old, err := DecodeCount(raw); err == nil && old == n {
			return
		}
	}
	e.set(name, strconv.AppendInt(nil, n, 10), nil)
}

// Bool sets a member to b. absent is the value for which a missing or null member stands: if b is equal to absent,
// Bool leaves such a member unchanged.
func (e *MemberEditor) Bool(name string, b, absent bool) {
	if b == absent && e.blank(name) {
		return
	}
	if raw, ok := e.doc.Get(name); ok && raw[0] != 'n' {
		if old, err := DecodeBool(raw); err == nil && old == b {
			return
		}
	}
	e.set(name, strconv.AppendBool(nil, b), nil)
}

// Map sets a member to an object, and keeps the text of every unchanged part. If the object is empty, Map leaves a
// missing or null member unchanged.
func (e *MemberEditor) Map(name string, m map[string]any) {
	if len(m) == 0 && e.blank(name) {
		return
	}
	var value []byte
	var same bool
	var err error
	if raw, ok := e.doc.Get(name); ok {
		value, same, err = MergeValue(raw, m, 1, e.depth)
	} else {
		value, err = AppendValue(nil, m, 1, e.depth)
	}
	if err == nil && !same {
		err = checkCounts(value, MostMembers)
	}
	if err != nil || !same {
		e.set(name, value, err)
	}
}

// Strings sets a member to a list of strings. If the list is empty, it leaves a missing or null member unchanged.
func (e *MemberEditor) Strings(name string, list []string) {
	if len(list) == 0 && e.blank(name) {
		return
	}
	if raw, ok := e.doc.Get(name); ok {
		if old, err := DecodeStrings(raw); err == nil && slices.Equal(old, list) {
			return
		}
	}
	value, err := AppendStrings(nil, list, 1)
	e.set(name, value, err)
}
