package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// withOffsets is testSchema with offsets for the first section.
func withOffsets() *Schema {
	s := testSchema()
	s.Offsets = "t.offsets"
	s.Sections[0].Offsets = true
	return s
}

// offsetsBed is a base, and perhaps a delta, with offsets.
type offsetsBed struct {
	t       testing.TB
	dir     string
	damaged []string // paths that were reported
}

func (o *offsetsBed) write(write func(*Set, Target, Plan) (Result, error), s *Set, lsn uint64, m map[string]string) {
	o.t.Helper()
	to := target(vfs.OS(), o.dir, lsn)
	to.Offsets = true
	if r, err := write(s, to, edits(o.t, m)); err != nil || r.OffsetsErr != nil {
		o.t.Fatal(err, r.OffsetsErr)
	}
}

func (o *offsetsBed) load(prev *Set) *Set {
	o.t.Helper()
	s, err := Load(vfs.OS(), o.dir, withOffsets(), Want{Store: store,
		Damaged: func(path string, err error) { o.damaged = append(o.damaged, path) }}, prev)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = s.Release() })
	return s
}

// same fails unless a look-up by offsets and a search both return want, nil for an absent key.
func (o *offsetsBed) same(s *Set, key string, want string, exists bool) {
	o.t.Helper()
	got, ok, err := s.Get(nil, 0, key)
	if err != nil || ok != exists || string(got) != want {
		o.t.Errorf("%q is %q, %v, %v, not %q, %v", key, got, ok, err, want, exists)
	}
}

func (o *offsetsBed) faults(s *Set) (list []error) {
	for err := range s.CheckOffsets(vfs.OS(), o.dir) {
		if !errors.Is(err, errs.ErrCorrupt) {
			o.t.Errorf("not damage: %v", err)
		}
		list = append(list, err)
	}
	return list
}

// With offsets a look-up reads one line, in base and delta, of each kind of key, and none for an absent key.
func TestOffsets(t *testing.T) {
	for k, f := range idFamilies {
		o := &offsetsBed{t: t, dir: t.TempDir()}
		ids := family(t, o.dir, 20_000, k)
		m := map[string]string{}
		for i, id := range ids {
			m[id] = fmt.Sprint(i + 1)
		}
		o.write(WriteBase, Empty(withOffsets(), 0), 4096, m)
		base := o.load(nil)
		changed := map[string]string{}
		for i, id := range ids[:3000] {
			changed[id] = fmt.Sprint(-i)
			if i%10 == 0 {
				changed[id] = "0"
			}
			changed[id+"new"] = "7"
		}
		o.write(WriteDelta, base, 8192, changed)
		s := o.load(base)
		if s.OffsetsDue() {
			t.Fatalf("%s: a table lacks offsets", f.name)
		}
		for i, id := range ids {
			want := fmt.Sprint(i + 1)
			if v, ok := changed[id]; ok {
				want = v
			}
			if want == "0" {
				o.same(s, id, "", false)
			} else {
				o.same(s, id, want, true)
			}
			enc, _ := EncodeKey(id)
			at, known, err := s.base.findByOffset(0, []byte(enc))
			if err != nil || !known || at.probes != 1 || at.start == at.end {
				t.Fatalf("%s: %q in the base: %+v, %v, %v", f.name, id, at, known, err)
			}
			byHand, err := s.base.find(0, []byte(enc))
			if err != nil || byHand.start != at.start || byHand.end != at.end {
				t.Fatalf("%s: %q is at %+v by a search, not at %+v: %v", f.name, id, byHand, at, err)
			}
			o.same(s, id+"none", "", false)
		}
		for _, id := range ids[:3000] {
			o.same(s, id+"new", "7", true)
		}
		if list := o.faults(s); len(list)+len(o.damaged) > 0 {
			t.Errorf("%s: %v, %q", f.name, list, o.damaged)
		}
	}
}

// Whatever happens to the offsets, no look-up gives a wrong answer, and damage is named once.
func TestOffsetsDamaged(t *testing.T) {
	o := &offsetsBed{t: t, dir: t.TempDir()}
	m := map[string]string{}
	for i := range 1000 {
		m[fmt.Sprint("key ", i)] = fmt.Sprint(i + 1)
	}
	o.write(WriteBase, Empty(withOffsets(), 0), 4096, m)
	path := filepath.Join(o.dir, "t.offsets")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := func(s *Set, what string) {
		t.Helper()
		for k, v := range m {
			o.same(s, k, v, true)
		}
		o.same(s, "absent", "", false)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	try := func(b []byte, what string, named bool) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		o.damaged = nil
		s := o.load(nil)
		all(s, what)
		if (len(o.damaged) == 1) != named || named && o.damaged[0] != "t.offsets" {
			t.Errorf("%s: named %q", what, o.damaged)
		}
		if list := o.faults(s); (len(list) == 1) != named {
			t.Errorf("%s: found %v", what, list)
		}
		if due := s.OffsetsDue(); due != (named || what != "whole") {
			t.Errorf("%s: due: %v", what, due)
		}
	}
	try(whole, "whole", false)
	for at := 0; at < len(whole); at += 1 + at%61 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		if at >= headSum+8 && at < offsetsBlock {
			continue // zeros of the header, which mean nothing
		}
		try(b, fmt.Sprint("byte ", at), true)
	}
	for _, n := range []int{0, 1, headSum, offsetsBlock, offsetsBlock + 1, 2 * offsetsBlock, len(whole) - 1} {
		try(whole[:n], fmt.Sprint("cut to ", n), true)
	}
	two := bytes.Clone(whole)
	copy(two[offsetsBlock:], whole[2*offsetsBlock:3*offsetsBlock])
	try(two, "a block twice", true)
	newer := bytes.Clone(whole)
	newer[headFormat] = 2
	binary.LittleEndian.PutUint64(newer[headSum:], xxhash.Sum64(newer[:headSum]))
	try(newer, "a newer format", false)

	// The writer of the table writes damaged offsets again, and look-ups of the same set use them.
	two[offsetsBlock] ^= 1
	if err := os.WriteFile(path, two, 0o600); err != nil {
		t.Fatal(err)
	}
	s := o.load(nil)
	all(s, "damaged again")
	names, err := WriteOffsets(s, target(vfs.OS(), o.dir, 4096), nil)
	if err != nil || len(names) != 1 || s.OffsetsDue() {
		t.Fatal(names, err, s.OffsetsDue())
	}
	all(s, "mended")
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, whole) {
		t.Errorf("the offsets differ from those before the damage: %v", err)
	}
	if list := o.faults(s); len(list) > 0 {
		t.Error(list)
	}
}

// Offsets of another content of the table do not count, and a table without offsets gets some.
func TestOffsetsOfAnother(t *testing.T) {
	o := &offsetsBed{t: t, dir: t.TempDir()}
	m := map[string]string{"a": "1", "b": "2", "c": "3"}
	o.write(WriteBase, Empty(withOffsets(), 0), 4096, m)
	first := o.load(nil)
	to := target(vfs.OS(), o.dir, 8192) // as an older program writes it
	if _, err := WriteBase(first, to, edits(t, map[string]string{"aa": "4", "b": "0"})); err != nil {
		t.Fatal(err)
	}
	s := o.load(first)
	if !s.OffsetsDue() || first.OffsetsDue() {
		t.Error("due", s.OffsetsDue(), first.OffsetsDue())
	}
	check := func() {
		t.Helper()
		o.same(first, "b", "2", true)
		o.same(first, "aa", "", false)
		o.same(s, "a", "1", true)
		o.same(s, "b", "", false)
		o.same(s, "aa", "4", true)
		o.same(s, "c", "3", true)
	}
	check()
	if list := o.faults(s); len(list)+len(o.damaged) > 0 {
		t.Error("offsets of another table are no damage", list, o.damaged)
	}
	if names, err := WriteOffsets(s, to, nil); err != nil || len(names) != 1 || s.OffsetsDue() {
		t.Fatal(names, err, s.OffsetsDue())
	}
	check()
	if again := o.load(s); again.OffsetsDue() {
		t.Error("a process that maps the table later does not use the offsets")
	}
}

// Keys that all fall into one block do not fit: then there are no offsets, and look-ups search.
func TestOffsetsThatDoNotFit(t *testing.T) {
	o := &offsetsBed{t: t, dir: t.TempDir()}
	m := map[string]string{}
	for i := 0; len(m) < 2*offsetsSlots; i++ {
		if key := fmt.Sprint(i); hashKey(0, []byte(key)) < 1<<56 {
			m[key] = "1"
		}
	}
	to := target(vfs.OS(), o.dir, 4096)
	to.Offsets = true
	r, err := WriteBase(Empty(withOffsets(), 0), to, edits(t, m))
	if err != nil || !errors.Is(r.OffsetsErr, errOffsetsTotal) {
		t.Fatal(err, r.OffsetsErr)
	}
	s := o.load(nil)
	for k := range m {
		o.same(s, k, "1", true)
	}
	o.same(s, "absent", "", false)
}

func BenchmarkGetByOffset(b *testing.B) {
	for k, f := range idFamilies {
		b.Run(f.name, func(b *testing.B) {
			o := &offsetsBed{t: b, dir: b.TempDir()}
			ids := family(b, o.dir, *entries, k)
			if _, err := WriteOffsets(o.load(nil), target(vfs.OS(), o.dir, 4096), nil); err != nil {
				b.Fatal(err)
			}
			s := o.load(nil)
			var dst []byte
			for _, id := range ids { // all pages and blocks touched
				if _, ok, err := s.Get(dst[:0], 0, id); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				var ok bool
				var err error
				if dst, ok, err = s.Get(dst[:0], 0, ids[i%len(ids)]); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// BenchmarkWriteOffsets measures what the offsets add to the writing of a table.
func BenchmarkWriteOffsets(b *testing.B) {
	o := &offsetsBed{t: b, dir: b.TempDir()}
	family(b, o.dir, *entries, 0)
	s := o.load(nil)
	for b.Loop() {
		if err := writeOffsets(target(vfs.OS(), o.dir, 4096), s.base, "t.json"); err != nil {
			b.Fatal(err)
		}
	}
}
