package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// forgery is what a stranger wrote into a store, under checksums that are right.
type forgery struct {
	name string
	do   func(f *forged)
	// codes are those that verify may give before the repair; without them it must find
	// something that repair can heal, or that is lost.
	codes []int
	// Nobody can tell it from a log of which the end was lost: the store can be read, and
	// is written to again after the repair.
	lost bool
}

// forged is a store with five memories that nobody has open.
type forged struct {
	t   *testing.T
	dir string
	log *forge.Log
}

var forgedIDs = []string{"m0", "m1", "m2", "m3", "m4"}

func newForged(t *testing.T) *forged {
	t.Helper()
	f := &forged{t: t, dir: filepath.Join(t.TempDir(), "storage")}
	ctx := t.Context()
	st, err := varve.Open(ctx, f.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range forgedIDs {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "memory " + id, Embedding: []float32{float32(i), 1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if f.log, err = forge.Open(vfs.OS(), f.dir); err != nil {
		t.Fatal(err)
	}
	return f
}

// line is an index line as a put writes it, for a document.
func (f *forged) line(id string, doc []byte, change func(*index.Entry)) []byte {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	e := index.Entry{Filepath: "memories/" + docfile.FileName(id), CreatedAt: now, UpdatedAt: now, Score: 0.5, Size: int64(len(doc)), ContentHash: sha256.Sum256(doc)}
	if change != nil {
		change(&e)
	}
	line, err := e.AppendMemory(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return line
}

func forgedDoc(id string) []byte {
	return fmt.Appendf(nil, "{\n  \"id\": %q,\n  \"content\": \"forged\"\n}\n", id)
}

// put appends a memory's entry. What change does to the record and alter to its encoded
// form is signed as it is.
func (f *forged) put(id string, change func(*record.Record), alter func([]byte) []byte) segment.LSN {
	doc := forgedDoc(id)
	r := record.Record{Created: true, Line: f.line(id, doc, nil), Doc: doc}
	if change != nil {
		change(&r)
	}
	value, inflated := new(record.Codec).Encode(nil, &r)
	if alter != nil {
		value = alter(value)
	}
	return f.log.Append(forge.Frame{Key: "m" + id, Value: value, Inflated: inflated})
}

// entry is a forgery of one entry of the memory x.
func entry(name string, change func(f *forged, r *record.Record), alter func([]byte) []byte) forgery {
	return forgery{name: name, do: func(f *forged) {
		f.put("x", func(r *record.Record) {
			if change != nil {
				change(f, r)
			}
		}, alter)
		f.save()
	}}
}

func (f *forged) save() {
	if err := f.log.Save(); err != nil {
		f.t.Fatal(err)
	}
}

func badLine(name, line string) forgery {
	return entry("line: "+name, func(f *forged, r *record.Record) {
		if line == "" {
			r.Line = nil
			return
		}
		good := string(r.Line)
		old, replaced, _ := strings.Cut(line, " => ")
		if r.Line = []byte(strings.Replace(good, old, replaced, 1)); string(r.Line) == good {
			f.t.Fatalf("%q is not in %s", old, good)
		}
	}, nil)
}

func put32(at int, n uint32) func([]byte) []byte {
	return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], n); return b }
}

// harmless says that verify may find nothing in it: it is what a put may have written.
func harmless(f forgery) forgery { f.codes = []int{codeOK, codeDamage, codeLost}; return f }

// sound says that verify finds nothing in it.
func sound(f forgery) forgery { f.codes = []int{codeOK}; return f }

func vectorOf(v ...float32) func(f *forged, r *record.Record) {
	return func(f *forged, r *record.Record) {
		r.Vector = v
		if text, err := json.Marshal(v); err == nil { // JSON has no NaN
			r.Doc = fmt.Appendf(nil, "{\n  \"id\": \"x\",\n  \"content\": \"forged\",\n  \"embedding\": %s\n}\n", text)
		}
		r.Line = f.line("x", r.Doc, func(e *index.Entry) { e.Dimension = len(v) })
	}
}

// group is a forgery of the line of an assembly with two members.
func group(name, change string) forgery {
	return forgery{name: "assembly: " + name, do: func(f *forged) {
		a := varve.Assembly{ID: "x", MemoryIDs: []string{"m0", "m1"}}
		doc := []byte("{\n  \"assembly_id\": \"x\",\n  \"memory_ids\": [\"m0\", \"m1\"]\n}\n")
		line, err := a.Line(doc, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		old, replaced, _ := strings.Cut(change, " => ")
		if !strings.Contains(string(line), old) {
			f.t.Fatalf("%q is not in %s", old, line)
		}
		line = []byte(strings.Replace(string(line), old, replaced, 1))
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: line, Doc: doc})
		f.log.Append(forge.Frame{Key: "ax", Value: value, Inflated: inflated})
		f.save()
	}}
}

// scoped is an entry of working memory.
func scoped(name, scope, head, body string) forgery {
	return forgery{name: "working: " + name, do: func(f *forged) {
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Line: []byte(head), Doc: []byte(body)})
		f.log.Append(forge.Frame{Key: "w" + scope, Value: value, Inflated: inflated})
		f.save()
	}}
}

// table is a change of a table of which the checksums are right.
func table(name, file, old, replaced string) forgery {
	return harmless(forgery{name: "table: " + name, do: func(f *forged) {
		path := filepath.Join(f.dir, filepath.FromSlash(file))
		b, err := os.ReadFile(path)
		if err != nil {
			f.t.Fatal(err)
		}
		changed := regexp.MustCompile(`(?s)`+old).ReplaceAll(b, []byte(replaced))
		if bytes.Equal(changed, b) {
			f.t.Fatalf("%s is not in %s", old, b)
		}
		if changed, err = forge.SealTable(changed); err == nil {
			err = os.WriteFile(path, changed, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}})
}

func key(name, key string, kind uint8) forgery {
	return forgery{name: "key: " + name, do: func(f *forged) {
		doc := forgedDoc("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: f.line("x", doc, nil), Doc: doc})
		f.log.Append(forge.Frame{Key: key, Value: value, Inflated: inflated, Kind: kind})
		f.save()
	}}
}

func slot(name string, change func(s *forge.Slot)) forgery {
	return forgery{name: "checkpoint: " + name, do: func(f *forged) {
		if err := forge.Checkpoint(vfs.OS(), f.dir, change); err != nil {
			f.t.Fatal(err)
		}
	}}
}

func lost(f forgery) forgery { f.lost = true; return f }

var forgeries = []forgery{
	entry("names itself as predecessor", func(f *forged, r *record.Record) { r.Previous = f.log.End() }, nil),
	entry("names a later one as predecessor", func(f *forged, r *record.Record) { r.Previous = f.log.End() + 4096 }, nil),
	entry("predecessor 2⁶⁴-8", func(f *forged, r *record.Record) { r.Previous = math.MaxUint64 - 7 }, nil),
	{name: "two that name each other", do: func(f *forged) {
		first := f.log.End()
		f.put("x", nil, nil) // both are of one length
		second := f.log.End()
		var err error
		if f.log, err = forge.Open(vfs.OS(), f.dir); err != nil {
			f.t.Fatal(err)
		}
		f.put("x", func(r *record.Record) { r.Previous = second }, nil)
		f.put("x", func(r *record.Record) { r.Previous, r.Created = first, false }, nil)
		f.save()
	}},
	{name: "a deletion that names itself", do: func(f *forged) {
		at := f.log.End()
		value, _ := new(record.Codec).Encode(nil, &record.Record{Previous: at})
		f.log.Append(forge.Frame{Key: "mm1", Value: value, Flags: segment.FlagDelete})
		f.save()
	}},
	{name: "a memory that is there names itself", do: func(f *forged) {
		at := f.log.End()
		f.put("m1", func(r *record.Record) { r.Previous, r.Created = at, false }, nil)
		f.save()
	}},
	{name: "working memory that names itself", do: func(f *forged) {
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Previous: f.log.End(), Line: []byte(`{"time":1,"tick":1,"version":1}`)})
		f.log.Append(forge.Frame{Key: "wscratchpad/agent", Value: value, Inflated: inflated})
		f.save()
	}},
	{name: "predecessor is another memory's", do: func(f *forged) {
		at := f.put("y", nil, nil)
		f.put("x", func(r *record.Record) { r.Previous, r.Created = at, false }, nil)
		f.save()
	}, codes: []int{0, 2, 3}},
	{name: "predecessor is in the middle of nothing", do: func(f *forged) {
		at := f.put("y", nil, nil)
		f.put("x", func(r *record.Record) { r.Previous, r.Created = at+16, false }, nil)
		f.save()
	}, codes: []int{0, 2, 3}},

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
	entry("record: inflates to another length", func(f *forged, r *record.Record) {
		r.Doc = bytes.Repeat([]byte(" "), 8192)
		r.Line = f.line("x", r.Doc, nil)
	}, put32(20, 1<<31)),
	entry("record: zstd is cut", func(f *forged, r *record.Record) {
		r.Doc = bytes.Repeat([]byte(" "), 8192)
		r.Line = f.line("x", r.Doc, nil)
	}, func(b []byte) []byte { return b[:len(b)-4] }),
	entry("record: nothing", nil, func([]byte) []byte { return nil }),
	entry("document: no JSON", func(f *forged, r *record.Record) {
		r.Doc = []byte("\x00\x01 not a document")
		r.Line = f.line("x", r.Doc, nil)
	}, nil),
	entry("document: of another id", func(f *forged, r *record.Record) {
		r.Doc = forgedDoc("m1")
		r.Line = f.line("x", r.Doc, nil)
	}, nil),
	entry("document: another hash", func(f *forged, r *record.Record) {
		r.Line = f.line("x", r.Doc, func(e *index.Entry) { e.ContentHash[0]++ })
	}, nil),

	key("none", "", 16),
	key("only its letter", "m", 16),
	key("too long", "m"+strings.Repeat("k", 1025), 16),
	key("invalid UTF-8", "m\xff\xfe", 16),
	key("an unknown letter", "Qx", 16),
	key("the letter of a membership", "rx", 16),
	key("an unknown kind", "mx", 200),
	key("a put that is a deletion", "mx", 17),
	{name: "key: a model that is none", do: func(f *forged) {
		value, _ := new(record.Codec).Encode(nil, &record.Record{Line: []byte(`{"name":5}`)})
		f.log.Append(forge.Frame{Key: "v", Value: value, Kind: record.KindModel})
		f.save()
	}},
	{name: "model: wild numbers", do: func(f *forged) {
		value, _ := new(record.Codec).Encode(nil, &record.Record{Line: []byte(`{"name":"x","dim":-9223372036854775808,"since":18446744073709551615,"next":"y"}`)})
		f.log.Append(forge.Frame{Key: "v", Value: value, Kind: record.KindModel})
		f.save()
	}},
	{name: "time: the last microsecond", do: func(f *forged) {
		doc := forgedDoc("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: f.line("x", doc, nil), Doc: doc})
		f.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated, Time: math.MaxInt64})
		f.save()
	}},
	{name: "time: the first microsecond", do: func(f *forged) {
		doc := forgedDoc("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: f.line("x", doc, nil), Doc: doc})
		f.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated, Time: math.MinInt64})
		f.save()
	}},

	{name: "time: the year 5000", do: func(f *forged) {
		doc := forgedDoc("x")
		value, inflated := new(record.Codec).Encode(nil, &record.Record{Created: true, Line: f.line("x", doc, nil), Doc: doc})
		f.log.Append(forge.Frame{Key: "mx", Value: value, Inflated: inflated, Time: time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()})
		f.save()
	}},
	entry("vector: not a number", vectorOf(float32(math.NaN()), 1, 2), nil),
	entry("vector: infinite", vectorOf(float32(math.Inf(1)), 1, 2), nil),
	harmless(entry("vector: another dimension", vectorOf(1, 2, 3, 4, 5), nil)),
	entry("vector: a number that is still to come", func(f *forged, r *record.Record) {
		vectorOf(1, 2, 3)(f, r)
		r.Line = f.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 1<<40 })
	}, nil),
	entry("vector: the number of another memory", func(f *forged, r *record.Record) {
		vectorOf(1, 2, 3)(f, r)
		r.Line = f.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 67108992 })
	}, nil),

	sound(entry("vector: the number that an import brought along", func(f *forged, r *record.Record) {
		vectorOf(1, 2, 3)(f, r)
		r.Line = f.line("x", r.Doc, func(e *index.Entry) { e.Dimension, e.VectorID = 3, 1<<48 })
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

	table("covers 2⁶³", "memory_index.json", `"lsn":[0-9]+`, `"lsn":9223372036854775808`),
	table("covers 2⁶¹", "memory_index.json", `"lsn":[0-9]+`, `"lsn":2305843009213693952`),
	table("from 2⁶³", "memory_index.json", `"from":[0-9]+`, `"from":9223372036854775808`),
	table("counts 2⁶² memories", "memory_index.json", `("memory_count":)[0-9]+(.*"memories":\[[0-9]+,[0-9]+,[0-9]+,)[0-9]+`, "${1}4611686018427387904${2}4611686018427387904"),
	table("a section behind the end", "memory_index.json", `("memories":\[[0-9]+,)[0-9]+`, "${1}9223372036854775807"),
	table("2⁶² lines", "memory_index.json", `("memories":\[[0-9]+,[0-9]+,)[0-9]+`, "${1}4611686018427387904"),
	table("a line of another size", "memory_index.json", `("m1":[^\n]*"size":)[0-9]+`, "${1}9223372036854775807"),
	table("a line of 2³¹ dimensions", "memory_index.json", `("m1":[^\n]*"dimension":)[0-9]+`, "${1}2147483647"),
	table("a line with a version that is still to come", "memory_index.json", `("m1":[^\n]*"version":)[0-9]+`, "${1}18446744073709551608"),
	table("the vectors cover 2⁶³", "vector_index/mapping.json", `"lsn":[0-9]+`, `"lsn":9223372036854775808`),
	table("the vectors cover 2⁶¹", "vector_index/mapping.json", `"lsn":[0-9]+`, `"lsn":2305843009213693952`),
	table("vectors of 2³¹ dimensions", "vector_index/mapping.json", `"dimension":[0-9]+`, `"dimension":2147483647`),
	table("vectors in 2⁶³ bytes", "vector_index/mapping.json", `("size":)[0-9]+`, "${1}9223372036854775807"),
	table("a vector of another number", "vector_index/mapping.json", `("m1": ?)[0-9]+`, "${1}9223372036854775807"),

	slot("segment size 0", func(s *forge.Slot) { s.SegmentSize = 0 }),
	slot("segment size 1", func(s *forge.Slot) { s.SegmentSize = 1 }),
	slot("segment size of another multiple", func(s *forge.Slot) { s.SegmentSize += 512 }),
	slot("segment size 2⁶³", func(s *forge.Slot) { s.SegmentSize = 1 << 63 }),
	slot("spilled 2⁶³", func(s *forge.Slot) { s.Spilled.LSN = 1 << 63 }),
	slot("all marks 2⁶³", func(s *forge.Slot) {
		s.Spilled.LSN, s.Flushed.LSN, s.Attested.LSN = 1<<63, 1<<63, 1<<63
	}),
	slot("all marks 2⁶⁴-8", func(s *forge.Slot) {
		s.Spilled.LSN, s.Flushed.LSN, s.Attested.LSN = math.MaxUint64-7, math.MaxUint64-7, math.MaxUint64-7
	}),
	slot("attested 0", func(s *forge.Slot) { s.Attested = forge.Mark{} }),
	slot("all marks 0", func(s *forge.Slot) {
		s.Spilled, s.Flushed, s.Attested = forge.Mark{}, forge.Mark{}, forge.Mark{}
	}),
	slot("spilled beyond flushed", func(s *forge.Slot) { s.Flushed.LSN -= 64 }),
	slot("flushed beyond attested", func(s *forge.Slot) { s.Flushed.LSN += 4096 }),
	lost(slot("attested ten segments on", func(s *forge.Slot) { s.Attested.LSN += 10 * s.SegmentSize })),
	lost(slot("attested 2³¹ segments on", func(s *forge.Slot) { s.Attested.LSN = segment.MaxNumber / 2 * s.SegmentSize })),
	slot("attested 2³² segments on", func(s *forge.Slot) { s.Attested.LSN = segment.MaxNumber * s.SegmentSize }),
	lost(slot("all marks ten segments on", func(s *forge.Slot) {
		s.Spilled.LSN += 10 * s.SegmentSize
		s.Flushed, s.Attested = s.Spilled, s.Spilled
	})),
	lost(slot("all marks 2³¹ segments on", func(s *forge.Slot) {
		s.Spilled.LSN = segment.MaxNumber / 2 * s.SegmentSize
		s.Flushed, s.Attested = s.Spilled, s.Spilled
	})),
	slot("a time far away", func(s *forge.Slot) { s.Time = math.MaxInt64 }),
	slot("of another store", func(s *forge.Slot) { s.UUID[0]++ }),
}

// TestForged: what a stranger signs costs at most what it says itself. Every command ends
// within seconds and says so, the rest of the store goes on, and after a repair verify
// has nothing to say.
func TestForged(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: every step is a process")
	}
	for _, c := range forgeries {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newForged(t)
			c.do(f)
			f.steps(c)
		})
	}
}

func (f *forged) steps(c forgery) {
	found := c.codes
	if found == nil {
		found = []int{codeDamage, codeLost}
	}
	f.run(found, "verify")
	f.run([]int{codeOK, codeDamage, codeLost}, "status")
	f.lists()
	for _, id := range forgedIDs {
		f.run([]int{codeOK}, "get", id)
	}
	written, after := []int{codeOK}, []string{"after"}
	if c.lost {
		written, after = []int{codeLost}, nil
	}
	f.run(written, "put", "put after the forgery", "--id", "after")
	f.run(written, "flush")
	f.run(written, "put", "put over it", "--id", "m1")
	f.run([]int{codeOK, codeLost, codeNotFound}, "history", "x")
	f.run([]int{codeOK, codeDamage, codeLost}, "verify")
	f.lists(after...)
	f.run([]int{codeOK, codeDamage, codeLost}, "repair")
	f.run([]int{codeOK, codeDamage, codeLost}, "repair", "--apply")
	f.run([]int{codeOK}, "verify")
	f.lists(after...)
	f.run([]int{codeOK}, "put", "put after the repair", "--id", "repaired")
	f.run([]int{codeOK}, "verify")
	f.lists(append(after, "repaired")...)
}

// lists wants the memories that were put in the list, whatever else is there.
func (f *forged) lists(more ...string) {
	f.t.Helper()
	out := f.run([]int{codeOK, codeLost}, "list", "--limit", "0", "--json")
	var d struct{ Memories []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		f.t.Errorf("list: %v: %.500s", err, out)
	}
	for _, id := range append(more, forgedIDs...) {
		if !slices.ContainsFunc(d.Memories, func(m struct{ ID string }) bool { return m.ID == id }) {
			f.t.Errorf("list has no %s: %.500s", id, out)
		}
	}
}

// forgedWait is the time that a command has; on a free machine it needs milliseconds.
const forgedWait = 8 * time.Second

// run runs memctl as a process and returns what it says.
func (f *forged) run(codes []int, args ...string) string {
	f.t.Helper()
	path, err := exec.LookPath("memctl")
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), forgedWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, "--store", f.dir)...)
	cmd.Env = append(os.Environ(), "MEMCTL_STORE=", "GOMEMLIMIT=off")
	cmd.Cancel = func() error { // so that it says where it was
		if cmd.Process.Signal(syscall.SIGQUIT) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if ctx.Err() != nil {
		f.t.Fatalf("memctl %q did not end within %s: %.3000s", args, forgedWait, errOut.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if strings.Contains(errOut.String(), "goroutine ") {
		f.t.Fatalf("memctl %q: %.1500s", args, errOut.String())
	}
	if !slices.Contains(codes, code) {
		f.t.Errorf("%s: memctl %q: exit code %d, want one of %d\n%.1500s%.1500s", f.t.Name(), args, code, codes, errOut.String(), out.String())
	}
	return out.String()
}
