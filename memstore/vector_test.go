package memstore

import (
	"bytes"
	"fmt"
	"testing"
)

// A write that leaves the embedding unchanged keeps the vector's id; any other has no id, or the
// imported one.
func TestPrepareVectorID(t *testing.T) {
	stored := Memory{ID: "a", Content: "x", Embedding: []float32{0.1, -2.5e-7, 3}}
	text, _, err := Prepare(&stored, nil, now, PrepareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Clone(text)
	read := func(change func(*Memory)) *Memory {
		m := decode(t, string(text))
		m.Version = 16
		change(m)
		return m
	}
	fresh := func(e ...float32) *Memory { return &Memory{ID: "a", Content: "other", Embedding: e} }
	old := func(change func(*Previous)) *Previous {
		p := &Previous{VectorID: 7, Version: 16}
		change(p)
		return p
	}
	nothing, withText := func(*Previous) {}, func(p *Previous) { p.Document = text }
	for _, c := range []struct {
		name string
		m    *Memory
		old  *Previous
		opts PrepareOptions
		want string
	}{
		{"new", fresh(1, 2), nil, PrepareOptions{}, `"dimension":2}`},
		{"new, imported", fresh(1, 2), nil, PrepareOptions{VectorID: 5}, `"dimension":2,"vector_id":5}`},
		{"none, imported", fresh(), nil, PrepareOptions{VectorID: 5}, `"dimension":0}`},
		{"written again as it was", fresh(0.1, -2.5e-7, 3), old(withText), PrepareOptions{}, `"dimension":3,"vector_id":7}`},
		{"kept over an imported one", fresh(0.1, -2.5e-7, 3), old(withText), PrepareOptions{VectorID: 5}, `"dimension":3,"vector_id":7}`},
		{"another one", fresh(0.1, -2.5e-7, 4), old(withText), PrepareOptions{}, `"dimension":3}`},
		{"taken out", fresh(), old(withText), PrepareOptions{}, `"dimension":0}`},
		{"the old text is not at hand", fresh(0.1, -2.5e-7, 3), old(nothing), PrepareOptions{}, `"dimension":3}`},
		{"the old one had no vector", fresh(0.1, -2.5e-7, 3), old(func(p *Previous) { p.Document, p.VectorID = text, 0 }), PrepareOptions{}, `"dimension":3}`},
		{"read and left alone", read(func(m *Memory) { m.Content = "y" }), old(nothing), PrepareOptions{}, `"dimension":3,"vector_id":7}`},
		{"read and changed", read(func(m *Memory) { m.Embedding = []float32{9} }), old(nothing), PrepareOptions{}, `"dimension":1}`},
		{"read and taken out", read(func(m *Memory) { m.Embedding = nil }), old(nothing), PrepareOptions{}, `"dimension":0}`},
		{"read from an older version", read(func(m *Memory) { m.Version = 8 }), old(nothing), PrepareOptions{}, `"dimension":3}`},
		{"read from an older version of the same embedding", read(func(m *Memory) { m.Version = 8 }), old(withText), PrepareOptions{}, `"dimension":3,"vector_id":7}`},
		{"the old text is damaged", fresh(0.1, -2.5e-7, 3), old(func(p *Previous) { p.Document = text[:40] }), PrepareOptions{}, `"dimension":3}`},
	} {
		doc, line, err := Prepare(c.m, c.old, now, c.opts)
		if want := fmt.Sprintf(`"size":%d,`, len(doc)) + c.want; err != nil || !bytes.HasSuffix(line, []byte(want)) {
			t.Errorf("%s: %s, %v, want %s", c.name, line, err, want)
		}
	}
}
