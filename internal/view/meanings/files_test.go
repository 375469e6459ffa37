package meanings

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/vector"
)

// folderIn returns the folder dir as that of a view.
func folderIn(dir string) *view.Folder {
	return &view.Folder{FS: vfs.OS(), Path: dir, Temp: filepath.Join(dir, "temp"), FileMode: 0o600,
		FolderMode: fs.ModePerm}
}

// TestManifestNumbers: numbers that no file can have are damage, also those with which a product overflows.
func TestManifestNumbers(t *testing.T) {
	t.Parallel()
	const dim = 8
	sound := func() *manifest {
		return &manifest{Format: formatVersion, Metric: "l2", Dimension: dim, Next: 2,
			Rows:     listing{Name: "r.st", Bytes: 100},
			Segments: []listing{{Name: "s.seg", Vectors: 1000, Bytes: headerBytes + 1000*(32+4*dim)}}}
	}
	for name, change := range map[string]func(m *manifest, s *listing){
		"":                          func(*manifest, *listing) {},
		"a product of 0":            func(m *manifest, s *listing) { m.Dimension, s.Bytes = math.MaxInt/2-7, headerBytes },
		"no dimension":              func(m *manifest, s *listing) { m.Dimension, s.Bytes = 0, headerBytes+1000*32 },
		"a dimension below 0":       func(m *manifest, _ *listing) { m.Dimension = -dim },
		"a dimension above any":     func(m *manifest, s *listing) { m.Dimension, m.Segments = dimensionMost+1, nil },
		"no vectors":                func(_ *manifest, s *listing) { s.Vectors, s.Bytes = 0, headerBytes },
		"vectors below 0":           func(_ *manifest, s *listing) { s.Vectors = -1000 },
		"other vectors":             func(_ *manifest, s *listing) { s.Vectors = 999 },
		"as many as can be counted": func(_ *manifest, s *listing) { s.Vectors = math.MaxInt },
		"less than a header":        func(_ *manifest, s *listing) { s.Bytes = headerBytes - 1 },
		"a byte more":               func(_ *manifest, s *listing) { s.Bytes++ },
		"bytes below 0":             func(_ *manifest, s *listing) { s.Bytes = -s.Bytes },
		"rows without a beginning":  func(m *manifest, _ *listing) { m.Rows.Bytes = len(rowsMagic) - 1 },
		"rows of bytes below 0":     func(m *manifest, _ *listing) { m.Rows.Bytes = -1 },
		"too long rows":             func(m *manifest, _ *listing) { m.Rows.Bytes = rowsMost + 1 },
		"another metric":            func(m *manifest, _ *listing) { m.Metric = "taxi" },
	} {
		m := sound()
		change(m, &m.Segments[0])
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		has, err := parseManifest(b)
		if name == "" {
			if err != nil || has.by != vector.L2 {
				t.Errorf("a sound manifest: %v, %v", has, err)
			}
		} else if !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSegmentOfMetric: vectors are written for the metric of those that the view has, not for that of the settings now,
// which the view without a store could not ask for.
func TestSegmentOfMetric(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folderIn(dir)
	for _, metric := range []vector.Metric{vector.L2, vector.IP} {
		m := bare()
		m.by = metric
		h := noted(m, "a", "one")[0]
		add(t, m, h, 3, 4)
		list, err := m.saveVectors(t.Context(), f, 0)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		s, err := openSegment(f, list[0], m.dim)
		if err != nil {
			t.Fatal(err)
		}
		if want := metric.Row(nil, []float32{3, 4}); string(s.row(0)) != string(want) {
			t.Errorf("%s: %x, want %x", metric, s.row(0), want)
		}
		if err := s.m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSaveVectorsEnds: vectors of many segments are not written any more when the context ends, because a store that
// closes within a time limit waits for them.
func TestSaveVectorsEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folderIn(dir)
	m := bare()
	add(t, m, noted(m, "a", "one")[0], 3, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := m.saveVectors(ctx, f, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v, want %v", list, err, context.Canceled)
	}
	if names, err := f.Names(); err != nil || len(names) > 0 {
		t.Errorf("files %v, %v", names, err)
	}
}
