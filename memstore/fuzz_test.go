package memstore

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// FuzzDecode: a document that was read is written, reads back as the same, and is stable; unknown
// members stay unchanged.
//
//	go test ./memstore -run '^$' -fuzz FuzzDecode -fuzztime 60s
func FuzzDecode(f *testing.F) {
	for _, s := range []string{rich, `{"id":"a","text":"c","significance":1,"last_access":1741289256.5,"embedding":"[1. 2.]"}`, `{"id":"a","timestamp":1741289256532}`,
		`{"id":"a","metadata":{"n":12345678901234567890}}`, `{"id":"a"`, `{"id":"a","expires_at":"0001-01-01T00:00:00Z"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := Decode(src, DecodeOptions{})
		if err == nil {
			checkMemory(t, src, m)
		}
	})
}

func checkMemory(t interface{ Fatalf(string, ...any) }, src []byte, m *Memory) {
	doc, err := m.Encode(Limits{MemoryBytes: 1 << 30})
	if err != nil {
		t.Fatalf("%q was read and is not written: %v", src, err)
	}
	again, err := Decode(doc, DecodeOptions{Limits: Limits{MemoryBytes: 1 << 30}})
	if err != nil || !again.Equal(m) {
		t.Fatalf("%q became %q: %v", src, doc, err)
	}
	if twice, err := again.Encode(Limits{MemoryBytes: 1 << 30}); err != nil || !bytes.Equal(twice, doc) {
		t.Fatalf("%q became %q and then %q: %v", src, doc, twice, err)
	}
	was, is := members(t, src), members(t, doc)
	for _, name := range olderNames() {
		if _, taken := was[name[1]]; !taken && was[name[0]] != nil {
			was[name[1]] = was[name[0]]
			delete(was, name[0])
		}
	}
	for _, at := range new(Memory).times() {
		delete(was, at.name)
		delete(is, at.name)
	}
	if len(was) != len(is) {
		t.Fatalf("%q became %q", src, doc)
	}
	for name, v := range was {
		if name == memberEmbedding || name == memberHyperbolic {
			if v[0] == '"' && samePrinted(v, is[name]) {
				continue
			}
		}
		if !bytes.Equal(v, is[name]) {
			t.Fatalf("%s: %s became %s", name, v, is[name])
		}
	}
}

func members(t interface{ Fatalf(string, ...any) }, src []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(src, &m); err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	return m
}

// On a failure rapid prints the seed and the command that replays it.
func TestAnyMemoryRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62135596800e6+1, 253402300799e6)
		when := func(label string) time.Time {
			if rapid.Bool().Draw(t, label+" set") {
				return time.UnixMicro(micros.Draw(t, label))
			}
			return time.Time{}
		}
		finite := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 })
		floats := rapid.SliceOfN(rapid.Float32().Filter(func(f float32) bool { return f-f == 0 }), 0, 5)
		value := rapid.Map(rapid.MapOf(rapid.String(), rapid.SliceOfN(finite, 0, 3)), func(m map[string][]float64) any {
			out := map[string]any{}
			for k, list := range m {
				l := []any{}
				for _, f := range list {
					l = append(l, f)
				}
				out[k] = l
			}
			return out
		})
		m := Memory{ID: rapid.StringN(1, 20, 100).Draw(t, "id"), Content: rapid.String().Draw(t, "content"), Embedding: floats.Draw(t, "embedding"),
			HyperbolicEmbedding: floats.Draw(t, "hyperbolic"), QuickRecalScore: finite.Draw(t, "score"), AccessCount: rapid.Int64().Draw(t, "count"),
			Timestamp: when("timestamp"), QuickRecalUpdated: when("updated"), LastAccessTime: when("access"), ExpiresAt: when("expires"),
			Metadata: rapid.MapOf(rapid.String(), rapid.OneOf(value, rapid.Map(rapid.String(), func(s string) any { return s }))).Draw(t, "metadata")}
		delete(m.Metadata, "session_id")
		doc, line, err := Prepare(&m, nil, now, PrepareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(doc, DecodeOptions{ID: m.ID})
		if err != nil || !back.Equal(&m) {
			t.Fatalf("%+v was written as %s and reads back as %+v: %v", m, doc, back, err)
		}
		checkMemory(t, doc, back)
		if !json.Valid(line) || bytes.ContainsAny(line, "\n") {
			t.Fatalf("%s", line)
		}
		// A Memory that lost its text, and one that kept it, are equal.
		fresh := *back
		fresh.source = nil
		kept, err := back.Encode(Limits{})
		if err != nil {
			t.Fatal(err)
		}
		anew, err := fresh.Encode(Limits{})
		if err != nil || !bytes.Equal(kept, anew) {
			t.Fatalf("%s\n%s\n%v", kept, anew, err)
		}
		if c := back.Clone(); !reflect.DeepEqual(c, back) {
			t.Fatalf("%+v clones as %+v", back, c)
		}
	})
}

// samePrinted reports whether a list has exactly the numbers of a printed vector,
// as float64.
func samePrinted(printed, list []byte) bool {
	var s string
	var got []float64
	if json.Unmarshal(printed, &s) != nil || json.Unmarshal(list, &got) != nil {
		return false
	}
	want := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("[] \n\r\t,", r) })
	return slices.EqualFunc(want, got, func(w string, g float64) bool {
		f, err := strconv.ParseFloat(w, 64)
		return err == nil && f == g
	})
}
