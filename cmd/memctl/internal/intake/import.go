package intake

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/diff"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/memstore"
)

// Report is what came of an import.
type Report struct {
	From       string                `json:"from"`
	Source     string                `json:"source"`
	Store      string                `json:"store"`
	tally                            // of memories
	Problems   []importer.Problem    `json:"problems"` // see ProblemsMost
	Counts     map[importer.Kind]int `json:"counts"`   // of all problems
	Assemblies tally                 `json:"assemblies"`
	importer.Report
}

// tally counts what became of the memories, or of the assemblies.
type tally struct {
	New      int `json:"new"`
	Same     int `json:"same"`     // there already, with the same text
	Kept     int `json:"kept"`     // there already with another text
	Replaced int `json:"replaced"` // likewise, by --replace
	Refused  int `json:"refused"`  // by a limit, or because it cannot be read as one
}

func (t *tally) Total() int { return t.New + t.Same + t.Kept + t.Replaced }

// kindKept and kindRefused are the problems that arise here.
const (
	kindKept    importer.Kind = "kept"
	kindRefused importer.Kind = "refused"
)

// Refusal reports whether a problem is about a memory that may have been lost.
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

// Intake puts what an importer yields into a store, a chunk at a time.
type Intake struct {
	Store    *varve.Store
	Limits   memstore.Limits
	Groups   assembly.Limits
	Zone     *time.Location
	Replace  bool
	Progress func(n int)
	Report   Report
	Failed   int // what should have become a memory or an assembly and did not

	Began time.Time // what has no time gets one from here on, in the order of the source
	taken int

	listed [2]map[importer.Kind]int // problems, and those that are refusals

	chunk []item
	bytes int
}

type item struct {
	memory   varve.Memory
	source   *importer.Item
	cond     varve.Cond // nil: none
	replaces bool
}

func (it *item) options() []varve.PutOption {
	// a memory is worth more than its vector
	list := []varve.PutOption{varve.AnyDimension(), varve.VectorNumber(it.source.VectorID), varve.RefusePurged()}
	if it.cond != nil {
		list = append(list, it.cond)
	}
	return list
}

// A chunk is written when it has so much.
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

// ProblemsMost is how many problems of one kind a report has, of those that are refusals and of the others; its counts
// are of all. A file may be nothing but problems.
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

// take decides about one memory, and writes when there are enough.
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

// decide reports whether an item is to be written, and on which condition (nil:
// none), by what getting what is there gave.
func (in *Intake) decide(it *importer.Item, there uint64, err error,
	same func() (bool, error)) (cond varve.Cond, wanted bool, _ error) {
	switch {
	case errors.Is(err, varve.ErrNotFound):
		return varve.IfAbsent(), true, nil
	case errors.Is(err, varve.ErrCorrupt) && in.Replace:
		return nil, true, nil // what cannot be read is what is to be replaced
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

// write stores the chunk as one commit. Where a memory is refused, or somebody
// was faster, they go one by one, so that only those stay behind. A signal waits
// for it: one that came in mid-commit would leave unknown what is stored.
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
			in.keep(it.source, "another process wrote it meanwhile")
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

// saysTheSame compares what is to be imported with what the store has, except for the times that a
// store sets itself, and the embedding that it had made. An embedding that the document had not
// itself is no reason to call it another.
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
