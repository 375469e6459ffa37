package assembly

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// FuzzDecode: a document that was read is written, reads back as the same, and is stable; unknown
// members stay unchanged.
//
//	go test ./assembly -run '^$' -fuzz FuzzDecode -fuzztime 60s
func FuzzDecode(f *testing.F) {
	for _, s := range []string{form1, form18, `{"id":"a","memories":["m","n"],"memory_ids":["m","m"]}`, `{"assembly_id":"a","id":5,"last_activated":1,"last_activation":null}`,
		`{"assembly_id":"a","is_active":null,"composite_embedding":"[1. 2.]","assembly_schema_version":1.80}`, `{"assembly_id":"a"`,
		`{"assembly_id":"a","last_activation":"0001-01-01","last_activated":0}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		a, err := Decode(src, DecodeOptions{})
		if err == nil {
			checkAssembly(t, src, a)
		}
	})
}

// ours returns the members that may be written differently from how they were read.
func ours() []string {
	names := append(memberOrder(), olderMembers)
	for _, n := range olderNames() {
		names = append(names, n[0])
	}
	return names
}

func checkAssembly(t interface{ Fatalf(string, ...any) }, src []byte, a *Assembly) {
	lim := Limits{AssemblyBytes: 1 << 30}
	doc, err := a.Encode(lim)
	if err != nil {
		// The only document that can be read and not written.
		if len(a.Name) > lim.Resolved().IDBytes {
			return
		}
		t.Fatalf("%q was read and is not written: %v", src, err)
	}
	again, err := Decode(doc, DecodeOptions{Limits: lim})
	if err != nil || !again.Equal(a) {
		t.Fatalf("%q became %q: %v", src, doc, err)
	}
	if twice, err := again.Encode(lim); err != nil || !bytes.Equal(twice, doc) {
		t.Fatalf("%q became %q and then %q: %v", src, doc, twice, err)
	}
	was, is := members(t, src), members(t, doc)
	for name, v := range was {
		if !slices.Contains(ours(), name) && !bytes.Equal(v, is[name]) {
			t.Fatalf("%s: %s became %s", name, v, is[name])
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok && !slices.Contains(ours(), name) {
			t.Fatalf("%q came out of nothing: %q", name, doc)
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

// FuzzMembersOf: no line makes MembersOf panic, and a line that it accepts names ids.
//
//	go test ./assembly -run '^$' -fuzz FuzzMembersOf -fuzztime 60s
func FuzzMembersOf(f *testing.F) {
	a := decode(f, form1)
	_, line, err := Prepare(a, nil, now, PrepareOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`,"members":["\u0000"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		ids, err := MembersOf(line)
		if err != nil && ids != nil {
			t.Fatalf("%q: %q and %v", line, ids, err)
		}
	})
}

// On a failure rapid prints the seed and the command that replays it.
func TestAnyAssemblyRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62135596800e6+1, 253402300799e6)
		finite := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 })
		floats := rapid.SliceOfN(rapid.Float32().Filter(func(f float32) bool { return f-f == 0 }), 0, 5)
		id := rapid.StringN(1, 20, 100)
		a := Assembly{ID: id.Draw(t, "id"), Name: rapid.StringN(0, 40, 200).Draw(t, "name"), Description: rapid.String().Draw(t, "description"),
			CompositeEmbedding: floats.Draw(t, "composite"), HyperbolicEmbedding: floats.Draw(t, "hyperbolic"),
			AccessCount: rapid.Int64().Draw(t, "accesses"), ActivationCount: rapid.Int64().Draw(t, "activations"),
			ActivationLevel: finite.Draw(t, "level"), Inactive: rapid.Bool().Draw(t, "inactive"), SchemaVersion: rapid.String().Draw(t, "schema"),
			EmotionProfile: rapid.MapOf(rapid.String(), rapid.Map(finite, func(f float64) any { return f })).Draw(t, "emotion")}
		for _, list := range a.lists() {
			*list.value = rapid.SliceOfN(id, 0, 4).Draw(t, list.name)
		}
		for _, at := range a.times() {
			if rapid.Bool().Draw(t, at.name+" set") {
				*at.value = time.UnixMicro(micros.Draw(t, at.name))
			}
		}
		doc, line, err := Prepare(&a, nil, now, PrepareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(doc, DecodeOptions{ID: a.ID})
		if err != nil || !back.Equal(&a) {
			t.Fatalf("%+v was written as %s and reads back as %+v: %v", a, doc, back, err)
		}
		checkAssembly(t, doc, back)
		if !json.Valid(line) || bytes.ContainsAny(line, "\n") {
			t.Fatalf("%s", line)
		}
		if ids, err := MembersOf(line); err != nil || !slices.Equal(ids, a.MemoryIDs) {
			t.Fatalf("%s: %q, %v", line, ids, err)
		}
		if again, err := back.Line(doc, 0); err != nil || !bytes.Equal(again, line) {
			t.Fatalf("%s\n%s\n%v", line, again, err)
		}
		// An Assembly that lost its text, and one that kept it, are equal.
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
