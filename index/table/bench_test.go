package table

import (
	"flag"
	"fmt"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

var entries = flag.Int("entries", 100_000, "entries of the tables that benchmarks use")

func BenchmarkGet(b *testing.B) {
	for k, f := range idFamilies {
		b.Run(f.name, func(b *testing.B) {
			dir := b.TempDir()
			ids := family(b, dir, *entries, k)
			s := load(b, dir, 0)
			var dst []byte
			probes := 0
			for _, id := range ids { // all pages and blocks touched
				at, err := s.base.find(0, []byte(id))
				if err != nil {
					b.Fatal(err)
				}
				probes += at.probes
			}
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				var ok bool
				var err error
				if dst, ok, err = s.Get(dst[:0], 0, ids[i%len(ids)]); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
			b.ReportMetric(float64(probes)/float64(len(ids)), "lines/op")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	ids := family(b, dir, *entries, 0)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s, err := Load(vfs.OS(), dir, testSchema(), Want{Store: store}, nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = s.Release()
		}
	})
	b.Run("open and first look-up", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s, err := Load(vfs.OS(), dir, testSchema(), Want{Store: store}, nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, ok, err := s.Get(nil, 0, ids[i%len(ids)]); !ok || err != nil {
				b.Fatal(err)
			}
			_ = s.Release()
		}
	})
}

func BenchmarkRewrite(b *testing.B) {
	for _, changed := range []int{0, 1000, *entries / 10} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			dir := b.TempDir()
			ids := family(b, dir, *entries, 0)
			m := map[string]string{}
			for _, id := range ids[:changed] {
				m[id] = value
			}
			lsn := uint64(4096)
			for b.Loop() {
				b.StopTimer()
				s := load(b, dir, 0)
				p := edits(b, m)
				lsn += 8
				b.StartTimer()
				r, err := WriteBase(s, target(vfs.OS(), dir, lsn), p)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(r.Size)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	family(b, dir, *entries, 0)
	s := load(b, dir, 0)
	b.SetBytes(s.base.Size())
	for b.Loop() {
		for err := range s.base.Check() {
			b.Fatal(err)
		}
	}
}
