package forgery

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"

	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// table returns a forgery that changes a table and gives it the right checksums.
func table(name, file, old, replaced string) Forgery {
	return harmless(Forgery{Name: "table: " + name, File: file, do: func(s *Store) {
		path := filepath.Join(s.Dir, filepath.FromSlash(file))
		b, err := os.ReadFile(path)
		if err != nil {
			fail(err)
		}
		changed := regexp.MustCompile(`(?s)`+old).ReplaceAll(b, []byte(replaced))
		if bytes.Equal(changed, b) {
			fail(fmt.Errorf("%s is not in %s", old, b))
		}
		if changed, err = forge.SealTable(changed); err == nil {
			err = os.WriteFile(path, changed, 0o600)
		}
		if err != nil {
			fail(err)
		}
	}})
}

func slot(name string, change func(c *forge.Slot)) Forgery {
	return Forgery{Name: "checkpoint: " + name, File: "checkpoint", do: func(s *Store) {
		if err := forge.Checkpoint(vfs.OS(), s.Dir, change); err != nil {
			fail(err)
		}
	}}
}

func lost(f Forgery) Forgery { f.Lost = true; return f }

var files = []Forgery{
	table("covers 2⁶³", "memory_index.json", `"lsn":[0-9]+`, `"lsn":9223372036854775808`),
	table("covers 2⁶¹", "memory_index.json", `"lsn":[0-9]+`, `"lsn":2305843009213693952`),
	table("from 2⁶³", "memory_index.json", `"from":[0-9]+`, `"from":9223372036854775808`),
	table("counts 2⁶² memories", "memory_index.json",
		`("memory_count":)[0-9]+(.*"memories":\[[0-9]+,[0-9]+,[0-9]+,)[0-9]+`,
		"${1}4611686018427387904${2}4611686018427387904"),
	table("a section behind the end", "memory_index.json", `("memories":\[[0-9]+,)[0-9]+`, "${1}9223372036854775807"),
	table("2⁶² lines", "memory_index.json", `("memories":\[[0-9]+,[0-9]+,)[0-9]+`, "${1}4611686018427387904"),
	table("a line of another size", "memory_index.json", `("m1":[^\n]*"size":)[0-9]+`, "${1}9223372036854775807"),
	table("a line of 2³¹ dimensions", "memory_index.json", `("m1":[^\n]*"dimension":)[0-9]+`, "${1}2147483647"),
	table("a line with a version that is still to come", "memory_index.json", `("m1":[^\n]*"version":)[0-9]+`,
		"${1}18446744073709551608"),
	table("the vectors cover 2⁶³", "vector_index/mapping.json", `"lsn":[0-9]+`, `"lsn":9223372036854775808`),
	table("the vectors cover 2⁶¹", "vector_index/mapping.json", `"lsn":[0-9]+`, `"lsn":2305843009213693952`),
	table("vectors of 2³¹ dimensions", "vector_index/mapping.json", `"dimension":[0-9]+`, `"dimension":2147483647`),
	table("vectors in 2⁶³ bytes", "vector_index/mapping.json", `("size":)[0-9]+`, "${1}9223372036854775807"),
	table("a vector of another number", "vector_index/mapping.json", `("m1": ?)[0-9]+`, "${1}9223372036854775807"),

	slot("segment size 0", func(c *forge.Slot) { c.SegmentSize = 0 }),
	slot("segment size 1", func(c *forge.Slot) { c.SegmentSize = 1 }),
	slot("segment size of another multiple", func(c *forge.Slot) { c.SegmentSize += 512 }),
	slot("segment size 2⁶³", func(c *forge.Slot) { c.SegmentSize = 1 << 63 }),
	slot("spilled 2⁶³", func(c *forge.Slot) { c.Spilled.LSN = 1 << 63 }),
	slot("all marks 2⁶³", func(c *forge.Slot) {
		c.Spilled.LSN, c.Flushed.LSN, c.Attested.LSN = 1<<63, 1<<63, 1<<63
	}),
	slot("all marks 2⁶⁴-8", func(c *forge.Slot) {
		c.Spilled.LSN, c.Flushed.LSN, c.Attested.LSN = math.MaxUint64-7, math.MaxUint64-7, math.MaxUint64-7
	}),
	slot("attested 0", func(c *forge.Slot) { c.Attested = forge.Mark{} }),
	slot("all marks 0", func(c *forge.Slot) {
		c.Spilled, c.Flushed, c.Attested = forge.Mark{}, forge.Mark{}, forge.Mark{}
	}),
	slot("spilled beyond flushed", func(c *forge.Slot) { c.Flushed.LSN -= 64 }),
	slot("flushed beyond attested", func(c *forge.Slot) { c.Flushed.LSN += 4096 }),
	lost(slot("attested ten segments on", func(c *forge.Slot) { c.Attested.LSN += 10 * c.SegmentSize })),
	lost(slot("attested 2³¹ segments on", func(c *forge.Slot) { c.Attested.LSN = segment.MaxNumber / 2 * c.SegmentSize })),
	slot("attested 2³² segments on", func(c *forge.Slot) { c.Attested.LSN = segment.MaxNumber * c.SegmentSize }),
	lost(slot("all marks ten segments on", func(c *forge.Slot) {
		c.Spilled.LSN += 10 * c.SegmentSize
		c.Flushed, c.Attested = c.Spilled, c.Spilled
	})),
	lost(slot("all marks 2³¹ segments on", func(c *forge.Slot) {
		c.Spilled.LSN = segment.MaxNumber / 2 * c.SegmentSize
		c.Flushed, c.Attested = c.Spilled, c.Spilled
	})),
	slot("a time far away", func(c *forge.Slot) { c.Time = math.MaxInt64 }),
	slot("of another store", func(c *forge.Slot) { c.UUID[0]++ }),
}
