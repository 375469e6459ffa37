package jsondoc

import (
	"strconv"
	"time"
)

// MemberWriter writes a new document, member by member, in one pass. If adding a member fails, Document returns the
// first such error, which names the member.
type MemberWriter struct {
	dst    []byte
	depth  int
	member string
	err    error
}

// NewMemberWriter returns a writer for a new document, which overwrites the content of buffer. depth is the maximum
// nesting of the document.
func NewMemberWriter(buffer []byte, depth int) MemberWriter {
	return MemberWriter{dst: append(buffer[:0], '{'), depth: depth}
}

// Document ends the document, and returns it with a line feed at the end. It also returns the first error of the calls
// that have added members.
func (w *MemberWriter) Document() ([]byte, error) {
	w.dst = append(w.dst, '\n', '}', '\n')
	return w.dst, w.err
}

func (w *MemberWriter) name(name string) {
	if w.member != "" {
		w.dst = append(w.dst, ',')
	}
	w.member = name
	w.dst = append(w.dst, "\n  \""...)
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, `": `...)
}

func (w *MemberWriter) done(dst []byte, err error) {
	w.dst = dst
	if err != nil && w.err == nil {
		w.err = InField(w.member, err)
	}
}

// Text adds a member with a string.
func (w *MemberWriter) Text(name, s string) {
	w.name(name)
	w.done(AppendString(w.dst, s))
}

// Floats adds a member with a vector. If the vector is nil, Floats adds no member.
func (w *MemberWriter) Floats(name string, list []float32) {
	if list != nil {
		w.name(name)
		w.done(AppendFloats(w.dst, list, 1))
	}
}

// Time adds a member with a time. If t is the zero time, Time adds no member.
func (w *MemberWriter) Time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.dst = AppendTime(w.dst, t)
	}
}

// Float adds a member with a number.
func (w *MemberWriter) Float(name string, f float64) {
	w.name(name)
	w.done(AppendFloat(w.dst, f, 64))
}

// Count adds a member with a whole number.
func (w *MemberWriter) Count(name string, n int64) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, n, 10)
}

// Bool adds a member with true or false.
func (w *MemberWriter) Bool(name string, b bool) {
	w.name(name)
	w.dst = strconv.AppendBool(w.dst, b)
}

// Map adds a member with an object.
func (w *MemberWriter) Map(name string, m map[string]any) {
	w.name(name)
	before := len(w.dst)
	dst, err := AppendValue(w.dst, m, 1, w.depth)
	if err == nil {
		err = checkCounts(dst[before:], MostMembers)
	}
	w.done(dst, err)
}

// Strings adds a member with a list of strings. If the list is nil, the member is an empty list.
func (w *MemberWriter) Strings(name string, list []string) {
	w.name(name)
	w.done(AppendStrings(w.dst, list, 1))
}

// AppendStrings appends a list of strings to dst, indented for the given level. If list is nil, it appends an empty
// list. Its errors name the element.
func AppendStrings(dst []byte, list []string, level int) ([]byte, error) {
	if len(list) == 0 {
		return append(dst, '[', ']'), nil
	}
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = AppendString(AppendNewline(dst, level+1), s); err != nil {
			return dst, InField(index(i), err)
		}
	}
	return append(AppendNewline(dst, level), ']'), nil
}
