package memstore

import (
	"strings"
	"testing"
)

// plain1K returns a memory whose document has about 1 KB.
func plain1K() Memory {
	return Memory{ID: "550e8400-e29b-41d4-a716-446655440000", Content: strings.Repeat("The user prefers short answers. ", 18), QuickRecalScore: 0.85,
		Timestamp: now, Metadata: map[string]any{"session_id": "s1", "category": "preference", "key": "style", "source": "chat"}}
}

func BenchmarkPrepare1K(b *testing.B) {
	m := plain1K()
	b.ReportAllocs()
	for b.Loop() {
		n := m
		doc, _, err := Prepare(&n, nil, now, PrepareOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(doc)))
	}
}

// Read, changed in one member, written.
func BenchmarkPrepareDecoded1K(b *testing.B) {
	m := plain1K()
	doc, _, err := Prepare(&m, nil, now, PrepareOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d := decode(b, string(doc))
	d.AccessCount++
	b.ReportAllocs()
	for b.Loop() {
		n := *d
		if _, _, err := Prepare(&n, nil, now, PrepareOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode1K(b *testing.B) { benchmarkDecode(b, plain1K()) }

func BenchmarkDecode768(b *testing.B) {
	m := plain1K()
	m.Embedding = make([]float32, 768)
	for i := range m.Embedding {
		m.Embedding[i] = 1 / float32(3+i)
	}
	benchmarkDecode(b, m)
}

func benchmarkDecode(b *testing.B, m Memory) {
	doc, _, err := Prepare(&m, nil, now, PrepareOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(doc, DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
