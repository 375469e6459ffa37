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

// Refusal reports whether a problem means that a memory of the source was perhaps not imported.
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

// Intake stores the items that an importer yields. It collects several memories in a chunk, and writes each chunk as
// one commit.
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

func (i *item) options() []varve.PutOption {
	// A memory is stored even if its vector cannot be used.
	list := []varve.PutOption{varve.AnyDimension(), varve.VectorNumber(i.source.VectorID), varve.RefusePurged()}
	if i.cond != nil {
		list = append(list, i.cond)
	}
	return list
}

// A chunk is written when it reaches one of these limits.
const (
	ChunkItems = 1000
	chunkBytes = 4 << 20
)

func (intake *Intake) Run(ctx context.Context, src *importer.Source) error {
	defer intake.Progress(-1)
	for e, err := range src.All(ctx) {
		if err == nil && e.Problem != nil {
			intake.problem(*e.Problem)
			continue
		}
		switch {
		case err != nil:
		case e.Item.Assembly:
			err = intake.takeAssembly(ctx, e.Item)
		default:
			err = intake.take(ctx, e.Item)
		}
		if err != nil {
			return errors.Join(err, intake.write(ctx))
		}
	}
	intake.Report.Report = src.Report()
	return intake.write(ctx)
}

// ProblemsMost is the maximum number of problems of one kind in a report. Refusals and other problems have this limit
// separately; Counts includes all problems. The limit is needed because every line of a file may have a problem.
const ProblemsMost = 10_000

func (intake *Intake) problem(p importer.Problem) {
	intake.Report.Counts[p.Kind]++
	listed := &intake.listed[0]
	if Refusal(p) {
		listed = &intake.listed[1]
	}
	if *listed == nil {
		*listed = map[importer.Kind]int{}
	}
	if (*listed)[p.Kind]++; (*listed)[p.Kind] <= ProblemsMost {
		intake.Report.Problems = append(intake.Report.Problems, p)
	}
	if Refusal(p) {
		intake.Failed++
	}
}

func (intake *Intake) tally(src *importer.Item) *tally {
	if src.Assembly {
		return &intake.Report.Assemblies
	}
	return &intake.Report.tally
}

func (intake *Intake) refuse(src *importer.Item, err error) {
	intake.tally(src).Refused++
	intake.problem(importer.Problem{Path: src.Path, ID: src.ID, Kind: kindRefused, Reason: err.Error()})
}

// take decides whether the memory of an item is written. If so, take adds the memory to the chunk, the list of
// memories that are written in one commit. If the chunk is full, take writes it.
func (intake *Intake) take(ctx context.Context, src *importer.Item) error {
	m, err := memstore.Decode(src.JSON,
		memstore.DecodeOptions{Limits: intake.Limits, Location: intake.Zone, Owned: true})
	if err != nil {
		intake.refuse(src, err)
		return nil
	}
	there, err := intake.Store.Get(ctx, m.ID)
	cond, wanted, err := intake.decide(src, there.Version, err,
		func() (bool, error) { return saysTheSame(m, &there, src.Vector) })
	if err != nil || !wanted {
		return err
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = there.Timestamp
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = intake.Began.Add(time.Duration(intake.taken))
		intake.taken++
	}
	intake.chunk = append(intake.chunk, item{*m, src, cond, there.Version != 0 || cond == nil})
	intake.bytes += len(src.JSON)
	if len(intake.chunk) >= ChunkItems || intake.bytes >= chunkBytes {
		return intake.write(ctx)
	}
	return nil
}

// decide reports whether an item must be written, and on which condition; a nil condition means that the write is
// unconditional. version is the version of the stored document, and err is the error of reading it. same reports
// whether the item equals the stored document. If the item must not be written, decide records the reason in the
// report.
func (intake *Intake) decide(src *importer.Item, version uint64, err error,
	same func() (bool, error)) (cond varve.Cond, wanted bool, _ error) {
	switch {
	case errors.Is(err, varve.ErrNotFound):
		return varve.IfAbsent(), true, nil
	case errors.Is(err, varve.ErrCorrupt) && intake.Replace:
		return nil, true, nil // replace the unreadable document
	case errors.Is(err, varve.ErrCorrupt):
		intake.refuse(src, err)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	equal, err := same()
	switch {
	case err != nil:
		intake.refuse(src, err)
		return nil, false, nil
	case equal:
		intake.tally(src).Same++
		return nil, false, nil
	case !intake.Replace:
		intake.keep(src, "the store has another text under this id; --replace replaces it")
		return nil, false, nil
	}
	return varve.IfVersion(version), true, nil
}

func (intake *Intake) keep(src *importer.Item, reason string) {
	intake.tally(src).Kept++
	intake.problem(importer.Problem{Path: src.Path, ID: src.ID, Kind: kindKept, Reason: reason})
}

// write stores the chunk as one commit. If a memory is refused, or another process has written one of the memories,
// write stores the memories one by one, so that the others are stored nevertheless. A signal does not interrupt write:
// otherwise it would be unknown which memories are stored.
func (intake *Intake) write(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	chunk := intake.chunk
	intake.chunk, intake.bytes = nil, 0
	if len(chunk) == 0 {
		return nil
	}
	b := new(varve.Batch)
	for i := range chunk {
		b.Put(chunk[i].memory, chunk[i].options()...)
	}
	err := intake.Store.Apply(ctx, b)
	if err == nil {
		for i := range chunk {
			intake.stored(chunk[i].source, chunk[i].replaces)
		}
		return nil
	}
	if cli.Classify(err).Code != cli.CodeRefused && !errors.Is(err, varve.ErrConflict) {
		return err
	}
	for i := range chunk {
		it := &chunk[i]
		_, err := intake.Store.Put(ctx, it.memory, it.options()...)
		switch {
		case err == nil:
			intake.stored(it.source, it.replaces)
		case errors.Is(err, varve.ErrConflict):
			intake.keep(it.source, "another process wrote this memory meanwhile")
		case cli.Classify(err).Code == cli.CodeRefused:
			intake.refuse(it.source, err)
		default:
			return err
		}
	}
	return nil
}

func (intake *Intake) stored(src *importer.Item, replaces bool) {
	if replaces {
		intake.tally(src).Replaced++
	} else {
		intake.tally(src).New++
	}
	intake.Progress(1)
}

// saysTheSame reports whether the imported memory m equals the stored memory there. It ignores CreatedAt and
// UpdatedAt, and ignores the Timestamp if m has none. If the contents are equal and m has no embedding, it ignores the
// embedding. borrowed is true if the imported document itself had no embedding: then the embedding is ignored too, if
// the stored memory has one.
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
