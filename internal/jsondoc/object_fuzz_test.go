package jsondoc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// FuzzObject verifies that encoding/json also accepts each text that Parse accepts, and reads it the same way, and that
// writing the text and reading it again changes nothing.
//
//	go test ./internal/jsondoc -run '^$' -fuzz FuzzObject -fuzztime 60s
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1.0,"b":[null,{"c":"\ud83d\ude00"}]}`, `{"a":1,"a":2}`, `{"a":NaN}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkObject(t, src) })
}

func checkObject(t interface {
	Fatalf(string, ...any)
	Helper()
}, src []byte) {
	t.Helper()
	before := bytes.Clone(src)
	o, err := Parse(src, 0)
	if !bytes.Equal(before, src) {
		t.Fatalf("Parse wrote to its input %q", before)
	}
	if err != nil {
		return
	}
	doc := o.AppendDocument(nil)
	p, err := Parse(doc, 0)
	if err != nil || p.Len() != o.Len() {
		t.Fatalf("%q was written as %q: %v", src, doc, err)
	}
	for i, m := range o.Members() {
		if n := p.Members()[i]; n.Name != m.Name || !bytes.Equal(n.Value, m.Value) {
			t.Fatalf("%q: member %q %q became %q %q", src, m.Name, m.Value, n.Name, n.Value)
		}
	}
	if got, want := loadNumbers(t, doc), loadNumbers(t, src); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q says %v, %q says %v", src, want, doc, got)
	}
	trimmed := bytes.TrimSpace(src)
	v, err := DecodeValue(trimmed)
	if err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	if out, same, err := MergeValue(trimmed, v, 0, 0); err != nil || !same || !bytes.Equal(out, trimmed) {
		t.Fatalf("%q merged with itself: %q, %v, %v", src, out, same, err)
	}
}

func loadNumbers(t interface{ Fatalf(string, ...any) }, src []byte) any {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", src, err)
	}
	return v
}

// jsonValue returns a generator of any JSON value.
func jsonValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		if depth == 0 && kind > 5 {
			kind = 0
		}
		switch kind {
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2, 3:
			return rapid.String().Draw(t, "string")
		case 4:
			return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number"))
		case 5:
			return rapid.Float64().Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "float")
		case 6:
			return rapid.SliceOfN(jsonValue(depth-1), 0, 4).Draw(t, "list")
		case 7:
			return rapid.MapOfN(rapid.String(), jsonValue(depth-1), 0, 4).Draw(t, "object")
		}
		return nil
	})
}

// On a failure rapid prints the seed and the command that replays it.
func TestAnyDocumentRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.String(), jsonValue(4), 0, 8).Draw(t, "document")
		doc, err := AppendValue(nil, m, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkObject(t, doc)
		// The same as encoding/json writes it, which escapes and spaces differently.
		other, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		checkObject(t, other)
		if _, same, err := MergeValue(other, m, 0, 0); err != nil || !same {
			// float64s beyond their shortest digits cannot differ here: both write them.
			t.Fatalf("%s merged with its source: %v %v", other, same, err)
		}
	})
}
