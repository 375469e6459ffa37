package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector/embed"
)

type searchFlags struct {
	filterFlags
	like, vector  string
	mode          string
	kind          string
	limit, offset int
	least         float64
	explain       bool
	fragment      int
	perSession    int
	share         float64
	ranks         bool
	recency       float64
	halfLife      time.Duration
	importance    float64
	sort          string
	order         *memstore.Order // order in which hits are shown; nil: best first
}

func searchCommand(a *cli.App) *cobra.Command {
	var f searchFlags
	c := &cobra.Command{
		Use:        "search WORDS | --like ID | --vector FILE",
		SuggestFor: []string{"find", "recall", "query"},
		Short:      "Find memories and notes",
		Long: `Find memories by words, best first; or those whose embeddings are nearest to the embedding of a
memory, or to a vector. On a terminal the result is a table with the endings of ids, as in memctl
list, otherwise one memory per line with score, id, session and text, separated by tabs.

If VARVE_EMBED_URL names an embedding service and the store has embeddings, the search is by words
and by meaning, ranked together; --mode words and --mode meaning are one of the two alone.

Words are compared by their English stems, ignoring case and accents; words like "the" do not count.
They are looked for in the text, in tags, category, key, title, speaker, author, name and caption of
the metadata, and in the date. The neighbours of a memory in its session count too, so one that has
none of the words can be found. In a query, "ferry to Como" is a phrase, rom* means words that
begin so, +rome must be there, -rome must not, tag:travel is a word in a field, and of tag:a OR tag:b
one must be there.

Of a note its best section is found: what is below a heading, or a part of that of about 2,000
characters. In place of an id it has the path and the lines of the section, and its headings are before
its text; headings and path are searched as its title. Notes are found by words. --kind memory or
--kind note finds only these.

--sort shows the best N in another order, as by the time at which they happened; the next page has the
next best.

--explain adds what a score is made of: what each word gives, the fields that have it (or that a
neighbour has it), and what the session gives. In the table it takes the place of the text.

The score of a search by words is BM25F; that of embeddings the cosine, or 1/(1+d²) if the store
measures distances; that of both is from 0 to 1, a fifth of it by meaning (--share). By both, the best
200 by words and by meaning are ranked together; the others follow, with the score 0. --recency and
--importance raise the scores of the best 200. The file of a vector holds a JSON list of numbers, or the
numbers as consecutive float32, little-endian.`,
		Example: "  memctl search \"short answers\" --session s1\n  memctl search --like note-7 --limit 3 --min-score " +
			"0.5\n  memctl search --vector query.f32 --json | jq -r '.hits[].id'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (cmd.Flags().Changed("like") || cmd.Flags().Changed("vector")) {
				return cli.Usagef(cmd.CommandPath(), "words, --like and --vector cannot be combined")
			}
			return nil
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			err := f.check(cmd, args)
			if err != nil {
				return err
			}
			if f.order, err = f.sorting(cmd); err != nil {
				return err
			}
			filters, err := f.filters(cmd, a.Clock())
			if err != nil {
				return err
			}
			e, err := f.embedder(a, cmd, args)
			if err != nil {
				return err
			}
			q := varve.Query{Kinds: f.kinds(), Text: strings.Join(args, " "), Like: f.like, Limit: f.limit + 1, Offset: f.offset,
				MinScore: f.least, Explain: f.explain, Fragment: f.fragment, PerSession: f.perSession,
				Recency: f.recency, HalfLife: f.halfLife, Importance: f.importance, Held: heldMost}
			if q.Text != "" && q.Fragment == 0 && a.Out.Screen {
				q.Fragment = tableFragment
			}
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			return a.WithIn(cmd.Context(), dir, cli.Read, upkeep.Query(e), func(st *varve.Store) error {
				if f.vector != "" {
					if q.Vector, err = intake.Vector(cmd.Context(), a.In, "--vector", f.vector,
						cli.LimitsOf(st.Admin().Config())); err != nil {
						return err
					}
				}
				p := &searched{a: a, st: st, cmd: cmd, args: args, f: &f}
				q.Note = p.noted
				switch {
				case e != nil:
					return p.meaning(cmd.Context(), e, q, filters)
				case q.Like != "":
					return a.Memory(cmd.Context(), st, q.Like, func(id string) error {
						q.Like = id
						return p.memories(cmd.Context(), q, filters)
					})
				}
				return p.memories(cmd.Context(), q, filters)
			})
		}),
	}
	f.add(c)
	f.addAfter(c)
	fl := c.Flags()
	fl.StringVar(&f.like, "like", "", "find memories similar to the memory with this `id`, or ending of an id")
	fl.StringVar(&f.vector, "vector", "", "find memories near the vector in a `file`; - is stdin; or the JSON list itself")
	fl.StringVar(&f.mode, "mode", "", "search `mode`: both, meaning or words; by default both, where possible")
	fl.StringVar(&f.kind, "kind", "", "find only documents of one `kind`: memory or note")
	fl.IntVarP(&f.limit, "limit", "n", 10, "show at most `N` memories")
	fl.IntVar(&f.offset, "offset", 0, "skip the first `N` memories")
	fl.Float64Var(&f.least, "min-score", 0, "omit memories with a lower `score`; 0 keeps all")
	fl.IntVar(&f.perSession, "per-session", 0, "show at most `N` memories of one session, the best; 0 means any number")
	fl.StringVar(&f.sort, "sort", "",
		"show the best memories in another order, by `key`: created, updated, timestamp or id; put - before the key "+
			"for the opposite order")
	fl.Float64Var(&f.share, "share", 0.25,
		"in a search by both (words and meaning), the weight of the meaning; the weight of the words is 1")
	fl.BoolVar(&f.ranks, "ranks", false,
		"in a search by both, combine the ranks by words and by meaning instead of the scores")
	fl.Float64Var(&f.recency, "recency", 0,
		"raise each of the best 200 scores by up to `N` times its value; memories of later events gain more")
	fl.Var(span.Flag(&f.halfLife), "half-life", "age at which --recency adds half as much, 30d by default")
	fl.Float64Var(&f.importance, "importance", 0,
		"raise each of the best 200 scores by up to `N` times its value; a higher quickrecal_score gains more")
	fl.BoolVar(&f.explain, "explain", false, "show the parts of each score")
	fl.IntVar(&f.fragment, "fragment", 0,
		"show only the piece of a text with the most words of the query, at most `N` bytes")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	c.MarkFlagsMutuallyExclusive("like", "vector")
	return c
}

func (f *searchFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.like == "" && f.vector == "":
		return cli.Usagef(cmd.CommandPath(),
			"the query is missing: give words, --like ID or --vector FILE; memctl list lists all memories")
	case len(args) > 0 && strings.TrimSpace(strings.Join(args, "")) == "":
		return cli.Usagef(cmd.CommandPath(),
			"the words are empty: give words, --like ID or --vector FILE; memctl list lists all memories")
	case f.mode != "" && f.mode != byMeaning && f.mode != byWords && f.mode != byBoth:
		return cli.Usagef(cmd.CommandPath(), "--mode %q: must be both, meaning or words", f.mode)
	case cmd.Flags().Changed("kind") && f.kind != string(varve.KindMemory) && f.kind != string(varve.KindNote):
		return cli.Usagef(cmd.CommandPath(), "--kind %q: must be memory or note", f.kind)
	case (cmd.Flags().Changed("share") || f.ranks) && (len(args) == 0 || f.mode != "" && f.mode != byBoth):
		return cli.Usagef(cmd.CommandPath(),
			"--share and --ranks are for a search by words and meaning: omit them, or --mode, --like and --vector")
	case f.mode != "" && len(args) == 0:
		return cli.Usagef(cmd.CommandPath(), "--mode needs words to search for")
	case f.limit < 1:
		return cli.Usagef(cmd.CommandPath(), "--limit %d: must be 1 or more", f.limit)
	case f.limit > mostHits || f.offset > mostHits-f.limit:
		return cli.Usagef(cmd.CommandPath(),
			"--limit %d and --offset %d: must be at most %d together; memctl list has no limit", f.limit, f.offset, mostHits)
	case f.perSession < 0:
		return cli.Usagef(cmd.CommandPath(), "--per-session %d: must be 0 or more", f.perSession)
	case !(f.share > 0) || math.IsInf(f.share, 0):
		return cli.Usagef(cmd.CommandPath(), "--share %v: must be a number above 0", f.share)
	case !(f.recency >= 0 && f.recency <= varve.MostBoost):
		return cli.Usagef(cmd.CommandPath(), "--recency %v: must be from 0 to %d", f.recency, varve.MostBoost)
	case !(f.importance >= 0 && f.importance <= varve.MostBoost):
		return cli.Usagef(cmd.CommandPath(), "--importance %v: must be from 0 to %d", f.importance, varve.MostBoost)
	case cmd.Flags().Changed("half-life") && f.recency == 0:
		return cli.Usagef(cmd.CommandPath(), "--half-life requires --recency: give both, as in --recency 0.5 "+
			"--half-life 7d")
	case cmd.Flags().Changed("half-life") && f.halfLife <= 0:
		return cli.Usagef(cmd.CommandPath(), "--half-life %s: must be more than 0", span.Text(f.halfLife))
	case f.offset < 0:
		return cli.Usagef(cmd.CommandPath(), "--offset %d: must be 0 or more", f.offset)
	case f.fragment < 0 || f.fragment > 1<<16 || cmd.Flags().Changed("fragment") && f.fragment == 0:
		return cli.Usagef(cmd.CommandPath(), "--fragment %d: must be from 1 to 65536 bytes", f.fragment)
	case math.IsNaN(f.least) || math.IsInf(f.least, 0):
		return cli.Usagef(cmd.CommandPath(), "--min-score %v: must be a number", f.least)
	}
	return nil
}

// kinds returns the kinds of documents that are searched; nil means all.
func (f *searchFlags) kinds() []varve.Kind {
	if f.kind == "" {
		return nil
	}
	return []varve.Kind{varve.Kind(f.kind)}
}

// mostHits is the largest position that paging through hits can reach. It is one below a million, because
// search requests one hit more than it shows.
const mostHits = 1_000_000 - 1

// sorting returns the order in which the hits are shown; nil means the best hits first. The order does not change
// which hits are found, because the scores select the hits.
func (f *searchFlags) sorting(cmd *cobra.Command) (*memstore.Order, error) {
	if !cmd.Flags().Changed("sort") {
		return nil, nil
	}
	o, err := memstore.ParseOrder(f.sort, "")
	if err != nil || o.By == memstore.OrderScore || o.By == memstore.OrderSize {
		return nil, cli.Usagef(cmd.CommandPath(),
			"--sort %q: must be created, id, timestamp or updated; a - before the name reverses the order; without "+
				"--sort the best hits come first", f.sort)
	}
	return o, nil
}

// byBoth, byMeaning and byWords are the values of the flag --mode.
const byBoth, byMeaning, byWords = "both", "meaning", "words"

// embedder returns the embedder that computes the vector of the query. It returns nil if the search is by words only.
func (f *searchFlags) embedder(a *cli.App, cmd *cobra.Command, args []string) (*embed.Embedder, error) {
	if len(args) == 0 || f.mode == byWords {
		return nil, nil
	}
	e, err := a.Embedder()
	if e == nil && err == nil && f.mode != "" {
		err = cli.Usagef(cmd.CommandPath(), "--mode %s needs an embedding service: set VARVE_EMBED_URL and VARVE_EMBED_MODEL",
			f.mode)
	}
	if e == nil && err == nil && (cmd.Flags().Changed("share") || f.ranks) {
		err = cli.Usagef(cmd.CommandPath(),
			"--share and --ranks are for a search by words and meaning, which needs an embedding service: set VARVE_EMBED_URL "+
				"and VARVE_EMBED_MODEL")
	}
	return e, err
}

// searched is one run of the command search: its flags and arguments, and what it has found so far.
type searched struct {
	a    *cli.App
	st   *varve.Store
	cmd  *cobra.Command
	args []string

	f     *searchFlags
	notes []string // notes about the way in which the words were understood
}

// noted records a note in which the store says how it has understood the words of the query.
func (p *searched) noted(note string) {
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

// meaning searches by the vector of the query. Unless --mode is meaning, it combines this with a search by words. If
// --mode is not set and the search by vector fails or finds nothing, meaning searches by words only.
func (p *searched) meaning(ctx context.Context, e *embed.Embedder, q varve.Query, filters []varve.Filter) error {
	f, near, by := p.f, q, p.f.mode
	list, err := p.st.Vectors().Embed(ctx, []string{q.Text})
	var hits []varve.Hit
	if err == nil {
		near.Vector, near.Model = list[0], e.Model()
		if near.Share, near.RankFusion = f.share, f.ranks; by == byMeaning {
			near.Text, near.Share, near.RankFusion = "", 0, false
		}
		hits, err = p.st.Search(ctx, near, filters...)
	}
	switch {
	case ctx.Err() != nil:
		return err
	case by != "", err == nil && (len(hits) > 0 || q.Offset > 0 || q.MinScore > 0), err != nil && hits != nil:
		return p.show(ctx, hits, err, near, filters, cmp.Or(by, byBoth))
	case err != nil:
		p.a.Note("searching by words, since searching by meaning failed: %v", err)
	}
	return p.memories(ctx, q, filters)
}

// found is a hit in the JSON output of search.
type found struct {
	ID    string    `json:"id"`
	Score float64   `json:"score"`
	Parts *scoredBy `json:"parts,omitempty"`
	listed
	Explanation *explanation `json:"explanation,omitempty"`
	Fragment    *fragment    `json:"fragment,omitempty"`
}

// scoredBy has the two scores of which a hit's score is the sum: by words and by vector.
type scoredBy struct {
	Words   float64 `json:"words"`
	Meaning float64 `json:"meaning"`
}

// memories runs the query and shows the hits. It requests one hit more than it shows, to learn whether there are more.
func (p *searched) memories(ctx context.Context, q varve.Query, filters []varve.Filter) error {
	hits, err := p.st.Search(ctx, q, filters...)
	by := byWords
	switch {
	case q.Like != "":
		by = "like"
	case q.Vector != nil:
		by = "vector"
	}
	return p.show(ctx, hits, err, q, filters, by)
}

func (p *searched) show(ctx context.Context, hits []varve.Hit, err error, q varve.Query, filters []varve.Filter,
	mode string) error {
	if err != nil && hits == nil {
		return remedied(err)
	}
	a, more := p.a, len(hits) == q.Limit
	hits = hits[:min(len(hits), q.Limit-1)]
	if p.f.order != nil {
		slices.SortFunc(hits, func(a, b varve.Hit) int { return p.f.order.Compare(sortedAs(&a), sortedAs(&b)) })
	}
	a.Document.Member("by", mode)
	l := newMemoryList(a, p.st, "hits", "SCORE")
	for i := range hits {
		if err := p.reload(ctx, &hits[i]); errors.Is(err, varve.ErrNotFound) {
			continue // deleted meanwhile
		} else if err != nil {
			a.Fail(err)
			continue
		}
		err := l.hit(ctx, &hits[i])
		if hits[i].Memory, hits[i].Note = (varve.Memory{}), nil; err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	for _, note := range p.notes {
		a.Note("%s", note)
	}
	if a.Document != nil && len(p.notes) > 0 {
		a.Document.Member("notes", p.notes)
	}
	switch {
	case a.Document != nil && more:
		a.Document.Member("next", q.Offset+len(hits))
	case a.Document != nil:
		a.Document.Member("next", nil)
	case more:
		a.Note("there are more items: %s", a.Repeated(p.cmd, p.args, "offset", strconv.Itoa(q.Offset+len(hits))))
	case len(hits) == 0 && err == nil:
		a.Note("%s", p.noMatchMessage(ctx, q, filters))
	}
	return err
}

// heldMost is the maximum number of bytes of documents that are kept in memory until the first hit is shown. The other
// documents are read again when they are shown.
const heldMost = 8 << 20

// reload reads the document of a hit again if the document was dropped to save memory (see heldMost).
func (p *searched) reload(ctx context.Context, h *varve.Hit) error {
	if !h.Trimmed {
		return nil
	}
	if h.Note != nil {
		return p.wholeNote(ctx, h)
	}
	m, err := p.st.Get(ctx, h.ID)
	h.Memory = m
	return err
}

// hit adds a hit to the list, with its score in the first column.
func (l *memoryList) hit(ctx context.Context, h *varve.Hit) error {
	score := func(digits int) string { return strconv.FormatFloat(h.Score, 'f', digits, 64) }
	it := cli.Item{ID: h.ID, Whole: h.Note != nil, Text: func() string {
		line := fmt.Sprintf("%s\t%s\t%s\t%s", score(4), nameOf(h), cli.Printable(h.Memory.Session()), textOf(h))
		if h.Explanation != nil {
			line += "\t" + scoreText(h)
		}
		return line
	}, Cells: func() []string {
		cells := l.cells(&h.Memory, score(3))
		switch last := len(cells) - 1; {
		case h.Explanation != nil:
			cells[last] = scoreText(h)
		case h.Fragment != nil && h.Note != nil:
			cells[last] = trail(h.Note) + marked(withoutHeading(h))
		case h.Fragment != nil:
			cells[last] = l.timeLeft(&h.Memory) + marked(h.Fragment)
		case h.Note != nil:
			cells[last] = textOf(h)
		}
		cells[0] = nameOf(h)
		return cells
	}}
	var parts *scoredBy
	if h.Words != 0 || h.Vector != 0 {
		parts = &scoredBy{h.Words, h.Vector}
	}
	switch {
	case !l.a.Encodes():
	case h.Note != nil:
		it.JSON = foundNoteOf(h, parts)
	default:
		it.JSON = found{ID: h.ID, Score: h.Score, listed: listedOf(&h.Memory, l.by(&h.Memory)),
			Parts: parts, Explanation: explanationOf(h.Explanation), Fragment: fragmentOf(h.Fragment)}
	}
	return l.Add(ctx, it)
}
