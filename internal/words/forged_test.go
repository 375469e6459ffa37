package words

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// inContent is a document of a session with a text.
func inContent(id, session, text string, time int64) *Doc {
	return &Doc{ID: id, Session: session, Time: time, LSN: uint64(time + 1), Texts: []query.Text{{Field: query.Content, Text: text}}}
}

// TestForgedGroup: a group of postings that ends where the one before ended, in a segment whose sums are
// right, is damage also for a search that passes over it on its way to the rows of a session.
func TestForgedGroup(t *testing.T) {
	t.Parallel()
	an := analyzer.NewOf(analyzer.None, analyzer.FirstTerms) // whose groups are no bitmaps
	var docs []*Doc
	for i := range 3 * groupLen {
		docs = append(docs, inContent(fmt.Sprintf("d%03d", i), fmt.Sprint("s", i/300), "everywhere", int64(i)))
	}
	seg := segmentOf(t, an, docs...)
	find := func(seg *Segment) ([]Hit, error) {
		set, err := NewSet().With(1, seg, nil)
		if err != nil {
			t.Fatal(err)
		}
		name := "s1"
		return set.Search(t.Context(), query.Parse("everywhere", an), Filter{Session: &name}, 1000, 0, nil)
	}
	if hits, err := find(seg); err != nil || len(hits) != 3*groupLen-300 {
		t.Fatal(len(hits), err)
	}
	e, ok, err := seg.lookup([]byte("everywhere"))
	if err != nil || !ok {
		t.Fatal(err)
	}
	// The second group: uvarint 128, which is 80 01, for its last row behind that of the first.
	forged := slices.Clone(seg.b[:seg.end])
	at := bytes.LastIndex(forged[:e.from+(e.to-e.from)*2/3], []byte{0x80, 0x01, 0x80, 0x01})
	if at <= e.from {
		t.Fatal("there is no second group")
	}
	forged[at+1] = 0
	bad, err := OpenSegment(build.Sealed(forged))
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := find(bad); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	// Before a search passes over it, it has counted the documents. What passes over it alone finds it too.
	e, _, err = bad.lookup([]byte("everywhere"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := (&Part{Seg: bad}).among(&e, spans{{300, 400}}, func(one) { n++ }); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestForgedBitmap: a bitmap of postings with a bit too many, or too few, in a segment whose sums are right, is damage.
func TestForgedBitmap(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.None)
	var docs []*Doc
	for i := range 4 * groupLen {
		docs = append(docs, inContent(fmt.Sprintf("d%03d", i), "s", []string{"half", "other"}[i%2], int64(i)))
	}
	seg := segmentOf(t, an, docs...)
	e, ok, err := seg.lookup([]byte("half"))
	if err != nil || !ok || seg.Format != build.Format {
		t.Fatal(seg.Format, err)
	}
	rows := func(seg *Segment) (n int, err error) {
		e, _, err := seg.lookup([]byte("half"))
		if err != nil {
			t.Fatal(err)
		}
		return n, (&Part{Seg: seg}).having(&e, func(o one) bool { n++; return o.row%2 == 0 })
	}
	if n, err := rows(seg); err != nil || n != 2*groupLen {
		t.Fatal(n, err)
	}
	at := bytes.Index(seg.b[e.from:e.to], []byte{0x55, 0x55, 0x55})
	if at < 0 {
		t.Fatal("there is no bitmap")
	}
	for _, x := range []byte{0x54, 0x57, 0xd5, 0} {
		forged := slices.Clone(seg.b[:seg.end])
		forged[e.from+at+1] = x
		bad, err := OpenSegment(build.Sealed(forged))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := rows(bad); !errors.Is(err, errs.ErrCorrupt) && n == 2*groupLen {
			t.Errorf("%#x: %d rows, %v", x, n, err)
		}
	}
	set, err := NewSet().With(1, seg, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged, _, err := set.Merge(t.Context(), []uint64{1})
	if err != nil || !bytes.Equal(merged.Bytes(), seg.Bytes()) {
		t.Errorf("merged, it is another one, %v", err)
	}
}

// TestForgedLink: a state whose sum is right says that a row is behind another one, and that one does not
// say it; no document is found twice.
func TestForgedLink(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.None)
	seg := segmentOf(t, an, inContent("a", "s1", "alpha beta", 1), inContent("b", "s2", "other", 2), inContent("c", "s3", "gamma", 3))
	forged := &Part{ID: 1, Seg: seg, laid: new(layoutOnce), links: map[uint32]link{0: {hasBehind: true, behind: Ref{1, 1}}}}
	part, err := ReadState(1, seg, forged.State())
	if err != nil {
		t.Fatal(err)
	}
	set, err := SetOf([]*Part{part})
	if err != nil {
		t.Fatal(err)
	}
	hits, err := set.Search(t.Context(), query.Parse("alpha beta", an), Filter{}, 10, 0, nil)
	if err != nil || len(hits) != 1 || hits[0].ID != "a" {
		t.Errorf("%v, %v", hits, err)
	}
}

// TestForgedOrderOfRows: a merge of a segment whose sums are right and whose rows are not sorted is damage,
// and not another one of that kind.
func TestForgedOrderOfRows(t *testing.T) {
	t.Parallel()
	an := analyzer.New(analyzer.None)
	seg := segmentOf(t, an, inContent("a", "s1", "alpha", 1), inContent("b", "s1", "beta", 2))
	forged := slices.Clone(seg.b[:seg.end])
	forged[seg.at[secTime]] = 9 // of the first row
	bad, err := OpenSegment(build.Sealed(forged))
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet().With(1, bad, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Merge(t.Context(), []uint64{1}); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
}
