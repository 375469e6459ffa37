package intake

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/diff"
	"github.com/varve-db/varve/memstore"
)

// Report is the result of an import.
type Report struct {
	From       string                `json:"from"`
	Source     string                `json:"source"`
	Store      string                `json:"store"`
	tally                            // counts of memories
	Problems   []importer.Problem    `json:"problems"` // see ProblemsMost
	Counts     map[importer.Kind]int `json:"counts"`   // number of problems, by kind
	Assemblies tally                 `json:"assemblies"`
	importer.Report
}

// tally counts the results for memories, or for assemblies.
type tally struct {
	New      int `json:"new"`
	Same     int `json:"same"`     // existed before, with the same content
	Kept     int `json:"kept"`     // existed before with different content, and were kept
	Replaced int `json:"replaced"` // existed before with different content, and were replaced (--replace)
	Refused  int `json:"refused"`  // exceeded a limit, or could not be decoded
}

func (t *tally) Total() int { return t.New + t.Same + t.Kept + t.Replaced }

// kindKept and kindRefused are the kinds of problems that Intake adds.
const (
	kindKept    importer.Kind = "kept"
	kindRefused importer.Kind = "refused"
)

// Refusal reports whether a problem means that a memory of the source may not have been imported.
func Refusal(p importer.Problem) bool {
	if p.LeftOut {
		return true
	}
	switch p.Kind {
	case importer.KindCorrupt, importer.KindUnread, importer.KindTooLarge, kindRefused:
		return !p.Taken
	}
	return false
}

// Intake stores the items that an importer yields, a chunk at a time.
type Intake struct {
	Store    *varve.Store
	Limits   memstore.Limits
	Groups   assembly.Limits
	Zone     *time.Location
	Replace  bool
	Progress func(n int)
	Report   Report
	Failed   int // number of items that should have become a memory or an assembly and did not

	Began time.Time // time of the first item without a time; the others follow in the order of the source
	taken int

	listed [2]map[importer.Kind]int // number of listed problems by kind, and how many of them are refusals

	chunk []item
	bytes int
}

type item struct {
	memory   varve.Memory
	source   *importer.Item
	cond     varve.Cond // condition of the write; nil: no condition
	replaces bool
}

func (it *item) options() []varve.PutOption {
	// A memory is stored even if its vector cannot be used.
	list := []varve.PutOption{varve.AnyDimension(), varve.VectorNumber(it.source.VectorID), varve.RefusePurged()}
	if it.cond != nil {
		list = append(list, it.cond)
	}
	return list
}

// A chunk is written when it reaches one of these limits.
const (
	ChunkItems = 1000
	chunkBytes = 4 << 20
)

func (in *Intake) Run(ctx context.Context, src *importer.Source) error {
	defer in.Progress(-1)
	for e, err := range src.All(ctx) {
		if err == nil && e.Problem != nil {
			in.problem(*e.Problem)
			continue
		}
		switch {
		case err != nil:
		case e.Item.Assembly:
			err = in.takeAssembly(ctx, e.Item)
		default:
			err = in.take(ctx, e.Item)
		}
		if err != nil {
			return errors.Join(err, in.write(ctx))
		}
	}
	in.Report.Report = src.Report()
	return in.write(ctx)
}

// ProblemsMost is the maximum number of problems of one kind in a report, separately for refusals
// and for other problems; Counts includes all. A file may have nothing but problems.
const ProblemsMost = 10_000

func (in *Intake) problem(p importer.Problem) {
	in.Report.Counts[p.Kind]++
	listed := &in.listed[0]
	if Refusal(p) {
		listed = &in.listed[1]
	}
	if *listed == nil {
		*listed = map[importer.Kind]int{}
	}
	if (*listed)[p.Kind]++; (*listed)[p.Kind] <= ProblemsMost {
		in.Report.Problems = append(in.Report.Problems, p)
	}
	if Refusal(p) {
		in.Failed++
	}
}

func (in *Intake) tally(it *importer.Item) *tally {
	if it.Assembly {
		return &in.Report.Assemblies
	}
	return &in.Report.tally
}

func (in *Intake) refuse(it *importer.Item, err error) {
	in.tally(it).Refused++
	in.problem(importer.Problem{Path: it.Path, ID: it.ID, Kind: kindRefused, Reason: err.Error()})
}

// take decides whether the memory of an item is written, adds it to the chunk if so, and writes the chunk if it
// is full.
func (in *Intake) take(ctx context.Context, it *importer.Item) error {
	m, err := memstore.Decode(it.JSON, memstore.DecodeOptions{Limits: in.Limits, Location: in.Zone, Owned: true})
	if err != nil {
		in.refuse(it, err)
		return nil
	}
	there, err := in.Store.Get(ctx, m.ID)
	cond, wanted, err := in.decide(it, there.Version, err,
		func() (bool, error) { return saysTheSame(m, &there, it.Vector) })
	if err != nil || !wanted {
		return err
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = there.Timestamp
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = in.Began.Add(time.Duration(in.taken))
		in.taken++
	}
	in.chunk = append(in.chunk, item{*m, it, cond, there.Version != 0 || cond == nil})
	in.bytes += len(it.JSON)
	if len(in.chunk) >= ChunkItems || in.bytes >= chunkBytes {
		return in.write(ctx)
	}
	return nil
}

// decide reports whether an item must be written, and on which condition; nil means no condition. there is the version
// of the stored document, and err is the error of reading it.
func (in *Intake) decide(it *importer.Item, there uint64, err error,
	same func() (bool, error)) (cond varve.Cond, wanted bool, _ error) {
	switch {
	case errors.Is(err, varve.ErrNotFound):
		return varve.IfAbsent(), true, nil
	case errors.Is(err, varve.ErrCorrupt) && in.Replace:
		return nil, true, nil // replace the unreadable document
	case errors.Is(err, varve.ErrCorrupt):
		in.refuse(it, err)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	equal, err := same()
	switch {
	case err != nil:
		in.refuse(it, err)
		return nil, false, nil
	case equal:
		in.tally(it).Same++
		return nil, false, nil
	case !in.Replace:
		in.keep(it, "the store has another text under this id; --replace replaces it")
		return nil, false, nil
	}
	return varve.IfVersion(there), true, nil
}

func (in *Intake) keep(it *importer.Item, why string) {
	in.tally(it).Kept++
	in.problem(importer.Problem{Path: it.Path, ID: it.ID, Kind: kindKept, Reason: why})
}

// write stores the chunk as one commit. If a memory is refused, or another process has written one
// of them, they are stored one by one, so that only those fail. A signal does not interrupt it:
// otherwise it would be unknown what is stored.
func (in *Intake) write(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	chunk := in.chunk
	in.chunk, in.bytes = nil, 0
	if len(chunk) == 0 {
		return nil
	}
	b := new(varve.Batch)
	for i := range chunk {
		b.Put(chunk[i].memory, chunk[i].options()...)
	}
	err := in.Store.Apply(ctx, b)
	if err == nil {
		for i := range chunk {
			in.stored(chunk[i].source, chunk[i].replaces)
		}
		return nil
	}
	if cli.Classify(err).Code != cli.CodeRefused && !errors.Is(err, varve.ErrConflict) {
		return err
	}
	for i := range chunk {
		it := &chunk[i]
		_, err := in.Store.Put(ctx, it.memory, it.options()...)
		switch {
		case err == nil:
			in.stored(it.source, it.replaces)
		case errors.Is(err, varve.ErrConflict):
			in.keep(it.source, "another process wrote this memory meanwhile")
		case cli.Classify(err).Code == cli.CodeRefused:
			in.refuse(it.source, err)
		default:
			return err
		}
	}
	return nil
}

func (in *Intake) stored(it *importer.Item, replaces bool) {
	if replaces {
		in.tally(it).Replaced++
	} else {
		in.tally(it).New++
	}
	in.Progress(1)
}

// saysTheSame reports whether an imported memory equals the stored one, except for the times that a
// store sets, and the embedding that it computed. borrowed means that the document had no embedding
// itself: then the embedding is not compared either.
func saysTheSame(m, there *varve.Memory, borrowed bool) (bool, error) {
	n := *m
	n.CreatedAt, n.UpdatedAt = there.CreatedAt, there.UpdatedAt
	if n.Timestamp.IsZero() {
		n.Timestamp = there.Timestamp
	}
	if n.Content == there.Content && (len(n.Embedding) == 0 || borrowed && len(there.Embedding) > 0) {
		n.Embedding = there.Embedding
	}
	a, err := n.Encode(cli.NoLimits())
	if err != nil {
		return false, err
	}
	b, err := there.Encode(cli.NoLimits())
	if err != nil {
		return false, err
	}
	return diff.Same(a, b)
}
