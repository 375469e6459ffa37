package forgery

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// line returns the index line that a put would write for a document.
func (s *Store) line(id string, doc []byte, change func(*index.Entry)) []byte {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	e := index.Entry{Filepath: "memories/" + jsondoc.FileName(id), CreatedAt: now, UpdatedAt: now, Score: 0.5,
		Size: int64(len(doc)), ContentHash: sha256.Sum256(doc)}
	if change != nil {
		change(&e)
	}
	line, err := e.AppendMemory(nil)
	if err != nil {
		fail(err)
	}
	return line
}

func document(id string) []byte {
	return fmt.Appendf(nil, "{\n  \"id\": %q,\n  \"content\": \"forged\"\n}\n", id)
}

// put appends a memory's entry. change modifies the record and alter its encoded form; the result is
// signed.
func (s *Store) put(id string, change func(*record.Record), alter func([]byte) []byte) segment.LSN {
	doc := document(id)
	r := record.Record{Created: true, Line: s.line(id, doc, nil), Doc: doc}
	if change != nil {
		change(&r)
	}
	value, inflated := new(record.Codec).Encode(nil, &r)
	if alter != nil {
		value = alter(value)
	}
	return s.log.Append(forge.Frame{Key: "m" + id, Value: value, Inflated: inflated})
}

// entry returns a forgery of one entry of the memory x.
func entry(name string, change func(s *Store, r *record.Record), alter func([]byte) []byte) Forgery {
	return Forgery{Name: name, do: func(s *Store) {
		s.put("x", func(r *record.Record) {
			if change != nil {
				change(s, r)
			}
		}, alter)
		s.save()
	}}
}

func (s *Store) save() {
	if err := s.log.Save(); err != nil {
		fail(err)
	}
}

func badLine(name, line string) Forgery {
	return entry("line: "+name, func(s *Store, r *record.Record) {
		if line == "" {
			r.Line = nil
			return
		}
		good := string(r.Line)
		old, replaced, _ := strings.Cut(line, " => ")
		if r.Line = []byte(strings.Replace(good, old, replaced, 1)); string(r.Line) == good {
			fail(fmt.Errorf("%q is not in %s", old, good))
		}
	}, nil)
}

// pack compresses head, a repetitive text and end, size bytes in all, as far as zstd does it: to a few
// thousandths of the size, as no version of the store writes it anymore. The inflated text is never in
// memory: package hostile counts the memory of this process, too.
func pack(head, end []byte, size int) (packed []byte, sum [32]byte) {
	var to bytes.Buffer
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		fail(err)
	}
	enc.ResetContentSize(&to, int64(size))
	hash := sha256.New()
	doc := io.MultiWriter(enc, hash)
	write := func(b []byte) {
		if _, err := doc.Write(b); err != nil {
			fail(err)
		}
		size -= len(b)
	}
	write(head)
	for text := bytes.Repeat([]byte("one word "), 1<<12); size > len(end); {
		write(text[:min(len(text), size-len(end))])
	}
	write(end)
	if err := enc.Close(); err != nil {
		fail(err)
	}
	return to.Bytes(), [32]byte(hash.Sum(nil))
}

// packed appends an entry whose document is compressed by pack.
func (s *Store) packed(key string, r *record.Record, doc []byte, size int) segment.LSN {
	value, _ := new(record.Codec).Encode(nil, r)
	value[1] |= 1 // compressed
	binary.LittleEndian.PutUint32(value[20:], uint32(size))
	value = append(value, doc...)
	return s.log.Append(forge.Frame{Key: key, Value: value, Inflated: uint32(len(value) + size)})
}

// bomb appends a version of a memory with a long and repetitive text, size bytes in all.
func (s *Store) bomb(id string, previous segment.LSN, size int) segment.LSN {
	doc, hash := pack(fmt.Appendf(nil, "{\n  \"id\": %q,\n  \"content\": \"", id), []byte("\"\n}\n"), size)
	line := s.line(id, nil, func(e *index.Entry) { e.Size, e.ContentHash = int64(size), hash })
	return s.packed("m"+id, &record.Record{Previous: previous, Created: previous == 0, Line: line}, doc, size)
}

// Bombs returns a forgery of n memories of size bytes each: x0, x1 …
func Bombs(n, size int) Forgery {
	return sound(Forgery{Name: fmt.Sprintf("bombs: %d of %d bytes", n, size), do: func(s *Store) {
		for i := range n {
			s.bomb(fmt.Sprintf("x%d", i), 0, size)
		}
		s.save()
	}})
}

// VersionBombs returns a forgery of n versions of the memory x, of size bytes each.
func VersionBombs(n, size int) Forgery {
	return sound(Forgery{Name: fmt.Sprintf("bombs: %d versions of %d bytes", n, size), do: func(s *Store) {
		at := segment.LSN(0)
		for range n {
			at = s.bomb("x", at, size)
		}
		s.save()
	}})
}

// WorkBombs returns a forgery of n entries of the scope session:s, which put values of size bytes: each
// under a name of its own if names is set, otherwise all under one.
func WorkBombs(n, size int, names bool) Forgery {
	return sound(Forgery{Name: fmt.Sprintf("bombs: %d values of %d bytes", n, size), do: func(s *Store) {
		at := segment.LSN(0)
		for i := range n {
			name := "k"
			if names {
				name = fmt.Sprint("k", i)
			}
			doc, _ := pack(fmt.Appendf(nil, `[{"do":"put","name":"v%s","value":"`, name), []byte("\"}]\n"), size)
			line := fmt.Appendf(nil, `{"time":1,"tick":1,"version":%d}`, i+1)
			if i == 0 {
				line = []byte(`{"time":1,"tick":1,"version":1,"fresh":true}`)
			}
			at = s.packed("wsession:s", &record.Record{Previous: at, Created: at == 0, Line: line}, doc, size)
		}
		s.save()
	}})
}

func put32(at int, n uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], n); return b }
}

// harmless permits that verify finds nothing in the forgery: a put may have written it.
func harmless(f Forgery) Forgery { f.Codes = []int{0, 2, 3}; return f }

// sound requires that verify finds nothing in the forgery.
func sound(f Forgery) Forgery { f.Codes = []int{0}; return f }

func vectorOf(v ...float32) func(s *Store, r *record.Record) {
	return func(s *Store, r *record.Record) {
		r.Vector = v
		if text, err := json.Marshal(v); err == nil { // JSON has no NaN
			r.Doc = fmt.Appendf(nil, "{\n  \"id\": \"x\",\n  \"content\": \"forged\",\n  \"embedding\": %s\n}\n", text)
		}
		r.Line = s.line("x", r.Doc, func(e *index.Entry) { e.Dimension = len(v) })
	}
}

// group returns a forgery of the line of an assembly with two members.
func group(name, change string) Forgery {
	return Forgery{Name: "assembly: " + name, do: func(s *Store) {
		a := varve.Assembly{ID: "x", MemoryIDs: []string{"m0", "m1"}}
		doc := []byte("{\n  \"assembly_id\": \"x\",\n  \"memory_ids\": [\"m0\", \"m1\"]\n}\n")
		line, err := a.Line(doc, 0)
		if err != nil {
			fail(err)
		}
		old, replaced, _ := strings.Cut(change, " => ")
		if !strings.Contains(string(line), old) {
			fail(fmt.Errorf("%q is not in %s", old, line))
		}
		line = []byte(strings.Replace(string(line), old, replaced, 1))
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: line, Doc: doc})
		s.log.Append(forge.Frame{Key: "ax", Value: value, Inflated: inflated})
		s.save()
	}}
}

// scoped returns a forgery of an entry of working memory.
func scoped(name, scope, head, body string) Forgery {
	return Forgery{Name: "working: " + name, do: func(s *Store) {
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Line: []byte(head), Doc: []byte(body)})
		s.log.Append(forge.Frame{Key: "w" + scope, Value: value, Inflated: inflated})
		s.save()
	}}
}

// read returns a forgery of a put of the memory x with fields.
func read(name string, fields []byte) Forgery {
	return Forgery{Name: "reading: " + name, do: func(s *Store) {
		doc := document("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: s.line("x", doc, nil), Doc: doc})
		s.log.Append(forge.Frame{Key: "mx", Fields: fields, Value: value, Inflated: inflated})
		s.save()
	}}
}

func key(name, key string, kind uint8) Forgery {
	return Forgery{Name: "key: " + name, do: func(s *Store) {
		doc := document("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: s.line("x", doc, nil), Doc: doc})
		s.log.Append(forge.Frame{Key: key, Value: value, Inflated: inflated, Kind: kind})
		s.save()
	}}
}

// kept returns a forgery of a copy of an older version of the memory m0, or of its line.
func kept(name, key string, change func(s *Store, r *record.Record)) Forgery {
	return Forgery{Name: "kept: " + name, do: func(s *Store) {
		doc := document("m0")
		line := record.KeptLine(nil, 1_790_000_000_000_000, 0, s.line("m0", doc, nil))
		r := record.Record{Previous: 7, Line: line, Doc: doc}
		if change != nil {
			change(s, &r)
		}
		value, inflated := new(record.Codec).Encode(nil, &r)
		s.log.Append(forge.Frame{Key: key, Value: value, Inflated: inflated, Kind: record.KindKept})
		s.save()
	}}
}

var entries = []Forgery{
	sound(kept("a copy", "kmm0", nil)),
	kept("of no version", "kmm0", func(_ *Store, r *record.Record) { r.Previous = 0 }),
	kept("of a later version", "kmm0", func(s *Store, r *record.Record) { r.Previous = s.log.End() + 8 }),
	kept("of another memory", "kmx", nil),
	kept("of no document", "kwm0", nil),
	kept("without an id", "km", nil),
	kept("another document", "kmm0", func(_ *Store, r *record.Record) { r.Doc = bytes.ToUpper(r.Doc) }),
	kept("a time that is none", "kmm0", func(_ *Store, r *record.Record) {
		r.Line = bytes.Replace(r.Line, []byte("1790000000000000"), []byte("99999999999999999999"), 1)
	}),
	kept("a time behind all others", "kmm0", func(_ *Store, r *record.Record) {
		r.Line = bytes.Replace(r.Line, []byte("1790000000000000"), []byte("1790000000000000000"), 1)
	}),
	kept("a line that is none", "kmm0", func(_ *Store, r *record.Record) { r.Line = []byte(`{"time":1,"line":}`) }),
	kept("a vector of its own", "kmm0", func(_ *Store, r *record.Record) { r.Vector = []float32{1} }),
	entry("names itself as predecessor", func(s *Store, r *record.Record) { r.Previous = s.log.End() }, nil),
	entry("names a later one as predecessor", func(s *Store, r *record.Record) { r.Previous = s.log.End() + 4096 }, nil),
	entry("predecessor 2⁶⁴-8", func(s *Store, r *record.Record) { r.Previous = math.MaxUint64 - 7 }, nil),
	{Name: "two that name each other", do: func(s *Store) {
		first := s.log.End()
		s.put("x", nil, nil) // both are of one length
		second := s.log.End()
		var err error
		if s.log, err = forge.Open(vfs.OS(), s.Dir); err != nil {
			fail(err)
		}
		s.put("x", func(r *record.Record) { r.Previous = second }, nil)
		s.put("x", func(r *record.Record) { r.Previous, r.Created = first, false }, nil)
		s.save()
	}},
	{Name: "a deletion that names itself", do: func(s *Store) {
		at := s.log.End()
		value, _ := new(record.Codec).Encode(nil, &record.Record{Previous: at})
		s.log.Append(forge.Frame{Key: "mm1", Value: value, Flags: segment.FlagDelete})
		s.save()
	}},
	{Name: "a memory that is there names itself", do: func(s *Store) {
		at := s.log.End()
		s.put("m1", func(r *record.Record) { r.Previous, r.Created = at, false }, nil)
		s.save()
	}},
	{Name: "working memory that names itself", do: func(s *Store) {
		value, inflated := new(record.Codec).Encode(nil,
			&record.Record{Previous: s.log.End(), Line: []byte(`{"time":1,"tick":1,"version":1}`)})
		s.log.Append(forge.Frame{Key: "wscratchpad/agent", Value: value, Inflated: inflated})
		s.save()
	}},
	{Name: "predecessor is another memory's", do: func(s *Store) {
		at := s.put("y", nil, nil)
		s.put("x", func(r *record.Record) { r.Previous, r.Created = at, false }, nil)
		s.save()
	}, Codes: []int{0, 2, 3}},
	{Name: "predecessor is in the middle of nothing", do: func(s *Store) {
		at := s.put("y", nil, nil)
		s.put("x", func(r *record.Record) { r.Previous, r.Created = at+16, false }, nil)
		s.save()
	}, Codes: []int{0, 2, 3}},

	badLine("none", ""),
	badLine("no JSON", `{ => <`),
	badLine("cut", `"dimension":0} => "dimension":0`),
	badLine("more behind it", `"dimension":0} => "dimension":0}}`),
	badLine("NaN", `0.5 => NaN`),
	badLine("infinite", `0.5 => 1e999`),
	badLine("another file", `memories/x.json => memories/m1.json`),
	badLine("a file outside", `memories/x.json => ../../outside.json`),
	badLine("wrong size", `"size": => "size":1`),
	badLine("size below zero", `"size": => "size":-`),
	badLine("no hash", `sha256: => sha1:`),
	badLine("a tombstone", `{ => {"deleted":true,`),
	badLine("a version of its own", `"size" => "version":8,"size"`),
	badLine("a time of its own", `"size" => "mtime":-9223372036854775808,"size"`),
	badLine("a dimension that its vector has not", `"dimension":0 => "dimension":2147483647`),
	badLine("invalid UTF-8", `memories/x => memories/`+"\xff"),

	entry("record: line beyond its end", nil, put32(4, math.MaxUint32)),
	entry("record: 2³² dimensions", nil, put32(16, math.MaxUint32)),
	entry("record: document longer than it is", nil, put32(20, 1<<31)),
	entry("record: compressed, and is not", nil, func(b []byte) []byte { b[1] |= 1; return b }),
	entry("record: inflates to another length", func(s *Store, r *record.Record) {
		r.Doc = bytes.Repeat([]byte(" "), 8192)
		r.Line = s.line("x", r.Doc, nil)
	}, put32(20, 1<<31)),
	entry("record: zstd is cut", func(s *Store, r *record.Record) {
		r.Doc = bytes.Repeat([]byte(" "), 8192)
		r.Line = s.line("x", r.Doc, nil)
	}, func(b []byte) []byte { return b[:len(b)-4] }),
	entry("record: nothing", nil, func([]byte) []byte { return nil }),
	entry("document: no JSON", func(s *Store, r *record.Record) {
		r.Doc = []byte("\x00\x01 not a document")
		r.Line = s.line("x", r.Doc, nil)
	}, nil),
	entry("document: of another id", func(s *Store, r *record.Record) {
		r.Doc = document("m1")
		r.Line = s.line("x", r.Doc, nil)
	}, nil),
	entry("document: another hash", func(s *Store, r *record.Record) {
		r.Line = s.line("x", r.Doc, func(e *index.Entry) { e.ContentHash[0]++ })
	}, nil),

	harmless(Bombs(6, 4<<20)), // in a log with small segments none is valid
	harmless(Bombs(1, 60<<20)),

	key("none", "", 16),
	key("only its letter", "m", 16),
	key("too long", "m"+strings.Repeat("k", 1025), 16),
	key("invalid UTF-8", "m\xff\xfe", 16),
	key("an unknown letter", "Qx", 16),
	key("the letter of a membership", "rx", 16),
	key("an unknown kind", "mx", 200),
	key("a put that is a deletion", "mx", 17),
	{Name: "key: a model that is none", do: func(s *Store) {
		value, _ := new(record.Codec).Encode(nil, &record.Record{Line: []byte(`{"name":5}`)})
		s.log.Append(forge.Frame{Key: "v", Value: value, Kind: record.KindModel})
		s.save()
	}},
	{Name: "model: wild numbers", do: func(s *Store) {
		value, _ := new(record.Codec).Encode(nil,
			&record.Record{Line: []byte(`{"name":"x","dim":-9223372036854775808,"since":18446744073709551615,"next":"y"}`)})
		s.log.Append(forge.Frame{Key: "v", Value: value, Kind: record.KindModel})
		s.save()
	}},
	{Name: "time: the last microsecond", do: func(s *Store) {
		doc := document("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: s.line("x", doc, nil), Doc: doc})
		s.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated, Time: math.MaxInt64})
		s.save()
	}},
	{Name: "time: the first microsecond", do: func(s *Store) {
		doc := document("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: s.line("x", doc, nil), Doc: doc})
		s.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated, Time: math.MinInt64})
		s.save()
	}},

	{Name: "time: the year 5000", do: func(s *Store) {
		doc := document("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: s.line("x", doc, nil), Doc: doc})
		s.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated,
			Time: time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()})
		s.save()
	}},
	sound(read("the first that is believed",
		(&segment.Fields{Reading: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()}).AppendTo(nil))),
	sound(read("before 1970", (&segment.Fields{Reading: -1}).AppendTo(nil))),
	sound(read("the year 0", (&segment.Fields{Reading: time.Date(0, 1, 1, 0, 0, 0, 0,
		time.UTC).UnixMicro()}).AppendTo(nil))),
	sound(read("the year 9999", (&segment.Fields{Reading: time.Date(9999, 12, 31, 0, 0, 0, 0,
		time.UTC).UnixMicro()}).AppendTo(nil))),
	sound(read("the first microsecond", (&segment.Fields{Reading: math.MinInt64}).AppendTo(nil))),
	sound(read("the last microsecond", (&segment.Fields{Reading: math.MaxInt64}).AppendTo(nil))),
	sound(read("twice", []byte{20, 0, 1, 8, 1, 0, 0, 0, 0, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0, 0, 0, 0})),
	sound(read("of a length that it has not", []byte{4, 0, 1, 2, 0, 0})),
	sound(read("behind the fields", []byte{2, 0, 1, 8})),
	sound(read("fields of a later version", []byte{5, 0, 200, 3, 1, 2, 3})),
	read("fields behind the frame", []byte{255, 255}),
	entry("vector: not a number", vectorOf(float32(math.NaN()), 1, 2), nil),
	entry("vector: infinite", vectorOf(float32(math.Inf(1)), 1, 2), nil),
	harmless(entry("vector: another dimension", vectorOf(1, 2, 3, 4, 5), nil)),
	entry("vector: a number that is still to come", func(s *Store, r *record.Record) {
		vectorOf(1, 2, 3)(s, r)
		r.Line = s.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 1<<40 })
	}, nil),
	entry("vector: the number of another memory", func(s *Store, r *record.Record) {
		vectorOf(1, 2, 3)(s, r)
		r.Line = s.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 67108992 })
	}, nil),

	sound(entry("vector: the number that an import brought along", func(s *Store, r *record.Record) {
		vectorOf(1, 2, 3)(s, r)
		r.Line = s.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 1<<48 })
	}, nil)),

	group("members are not the last", `"]} => "],"x":1}`),
	group("a member without an id", `"m1" => ""`),
	group("counts other members", `"member_count":2 => "member_count":4294967296`),
	group("its file is a memory's", `assemblies/ => memories/`),

	scoped("a head that is none", "global", `{`, ""),
	scoped("a version that overflows", "global", `{"time":1,"tick":1,"version":18446744073709551615}`, "\n\n"),
	scoped("no change", "global", `{"time":1,"tick":1,"version":1}`, "{}\n"),
	scoped("half a line", "global", `{"time":1,"tick":1,"version":1}`, "[1"),
	scoped("a scope that is none", "nonsense", `{"time":1,"tick":1,"version":1,"fresh":true}`, ""),
}
