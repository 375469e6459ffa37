package jsondoc

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
)

// wide returns an object of n names, with a string that has many more commas, colons and brackets.
func wide(n int) []byte {
	text := []byte(`{"text": "` + strings.Repeat(`{:,\"`, MostValues/4) + `", "wide": {"` + "0" + `": 0`)
	for i := 1; i < n-2; i++ {
		text = append(text, `,"`...)
		text = append(strconv.AppendInt(text, int64(i), 36), `":0`...)
	}
	return append(text, "}}\n"...)
}

// TestMostNames verifies that a document with too many names is refused before anything is allocated for them.
func TestMostNames(t *testing.T) {
	fits, more := wide(MostMembers), wide(MostMembers+1)
	if o, err := Parse(fits, 0); err != nil || o.Len() != 2 {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(more, 0)
	runtime.ReadMemStats(&after)
	var f *errs.FieldError
	if !errors.Is(err, errs.ErrTooLarge) || !errors.As(err, &f) || !strings.Contains(f.Limit, strconv.Itoa(MostMembers)) {
		t.Errorf("%v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("refusing it took %d bytes", n)
	}
}

// TestMostWritten verifies that whatever is written can be read again: a map of too many names or values is refused,
// and the error names the member, with and without a previous text.
func TestMostWritten(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	names, values := map[string]any{}, map[string]any{"list": make([]any, MostValues-2)}
	for i := range MostMembers {
		names[strconv.Itoa(i)] = nil
	}
	source, err := Parse([]byte(`{"metadata": {"a": 1}}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(m map[string]any) (texts [2][]byte, all [2]error) {
		w := NewMemberWriter(nil, MaxDepth)
		w.Map("metadata", m)
		texts[0], all[0] = w.Document()
		e := NewMemberEditor(source, func() []string { return nil }, MaxDepth)
		e.Map("metadata", m)
		texts[1], all[1] = e.Document("the whole")
		return texts, all
	}
	texts, all := write(values)
	for i, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		o, err := Parse(texts[i], 0)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := o.Get("metadata")
		if m, err := DecodeMap(raw); err != nil || len(m["list"].([]any)) != MostValues-2 {
			t.Error(err)
		}
	}
	values["list"] = make([]any, MostValues)
	for _, m := range []map[string]any{names, values} {
		if m["list"] == nil {
			m["one more"] = nil
		}
		_, all = write(m)
		for _, err := range all {
			var f *errs.FieldError
			if !errors.Is(err, errs.ErrTooLarge) || !errors.As(err, &f) || f.Field != "metadata" {
				t.Errorf("%v", err)
			}
		}
	}
	list := []byte("[" + strings.Repeat("[],", MostValues) + "0]")
	if _, err := DecodeValue(list); !errors.Is(err, errs.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}
