package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/vector/embed"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "locomo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	data := flag.String("data", "", "the `file` locomo10.json")
	dir := flag.String("dir", ".data", "`folder` for the stores, which are removed at the end")
	top := flag.Int("top", 10, "number of `hits` that are searched for the evidence")
	speaker := flag.Bool("speaker", false, "begin the content of each memory with the speaker")
	by := flag.String("by", "", "search only by `words`, meaning or both")
	cache := flag.String("vectors", "",
		"`file` that stores vectors for the next run; a vector that is in it is not requested again")
	every := flag.Int("every", 1, "ask only every N-th `question`")
	template := flag.String("template", "",
		"text to embed: content, turns (the default here), or a custom `template`")
	language := flag.String("language", "", "language of the stems, the setting `text_language`; none: no stems")
	apart := flag.Bool("apart", false,
		"search by words in stores of one conversation each, so that words are weighted by their rarity in that "+
			"conversation")
	ranks := flag.Bool("ranks", false, "in a search by both, combine ranks instead of scores")
	flag.Parse()
	if *data == "" || flag.NArg() > 0 || *every < 1 {
		return fmt.Errorf("usage: locomo -data locomo10.json")
	}
	memories, questions, err := read(*data, *speaker)
	if err != nil {
		return err
	}
	fmt.Printf("%d questions, %d of them with a turn as evidence\n", len(questions), count(questions))
	n := 0
	questions = slices.DeleteFunc(questions, func(question) bool { n++; return (n-1)%*every != 0 })
	if *apart {
		if *by != "" && *by != "words" || *cache != "" || *template != "" || *ranks {
			return fmt.Errorf("-apart searches by words: omit -by, -vectors, -template and -ranks")
		}
		return askApart(ctx, *dir, memories, questions, *top, *language)
	}
	var o varve.Options
	e, ok, err := embed.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	var em *embedder
	if ok {
		if em, err = newEmbedder(e, *cache); err != nil {
			return err
		}
		o.Embed, o.EmbedModel = em.embed, e.Model()
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	store, err := os.MkdirTemp(*dir, "locomo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	st, err := varve.Open(ctx, filepath.Join(store, "s"), &o)
	if err != nil {
		return err
	}
	defer st.Close()
	err = st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
		if c.TextLanguage = *language; *template != "" {
			c.Vectors = &varve.VectorConfig{Template: *template}
		}
		return nil
	})
	if err != nil {
		return err
	}
	began := time.Now()
	put, err := st.PutAll(ctx, slices.Values(memories))
	if err == nil {
		err = st.Flush(ctx)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d turns put and settled in %.2f s", put, time.Since(began).Seconds())
	if ok {
		fmt.Printf(", with embeddings of %s; %d pending", st.Admin().Stats().Model, st.Health(ctx).Pending)
	}
	fmt.Println()
	if *by == "" || *by == "words" {
		if err := ask(ctx, st, "words", questions, *top, byWords); err != nil {
			return err
		}
	}
	if !ok || *by == "words" {
		return nil
	}
	return askMeaning(ctx, st, em, questions, *top, *by, *ranks)
}

func count(questions []question) (n int) {
	for _, q := range questions {
		if len(q.evidence) > 0 {
			n++
		}
	}
	return n
}

func byWords(q *question) varve.Query { return varve.Query{Text: q.text} }

// askMeaning computes the vectors of the questions first, so that the measured time is that of the search alone.
func askMeaning(ctx context.Context, st *varve.Store, e *embedder, questions []question, top int, by string,
	ranks bool) error {
	var texts []string
	for _, q := range questions {
		texts = append(texts, q.text)
	}
	began := time.Now()
	list, err := e.embed(ctx, texts)
	if err != nil {
		return err
	}
	fmt.Printf("embedding the questions: %.2f s\n", time.Since(began).Seconds())
	vectors := map[string][]float32{}
	for i, text := range texts {
		vectors[text] = list[i]
	}
	if by != "both" {
		err := ask(ctx, st, "meaning", questions, top,
			func(q *question) varve.Query { return varve.Query{Vector: vectors[q.text]} })
		if err != nil || by == "meaning" {
			return err
		}
	}
	return ask(ctx, st, "both", questions, top, func(q *question) varve.Query {
		return varve.Query{Text: q.text, Vector: vectors[q.text], RankFusion: ranks}
	})
}

// ask asks all questions, over all conversations and over the question's own conversation, and prints for how many
// of them a turn of the evidence is among the first hits.
func ask(ctx context.Context, st *varve.Store, by string, questions []question, top int,
	query func(*question) varve.Query) error {
	for _, own := range []bool{false, true} {
		r := result{found: map[int]int{}, asked: map[int]int{}}
		for i := range questions {
			q := &questions[i]
			var filters []varve.Filter
			if own {
				filters = append(filters, varve.WithPrefix(q.conversation+"/"))
			}
			if err := r.ask(ctx, st, q, query(q), top, filters...); err != nil {
				return err
			}
		}
		where := "of all conversations"
		if own {
			where = "of its own"
		}
		r.print(by, where, top)
	}
	return nil
}

// askApart asks all questions by words, each in a store that contains only its own conversation.
func askApart(ctx context.Context, dir string, memories []varve.Memory, questions []question, top int,
	language string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	of := map[string][]varve.Memory{}
	for _, m := range memories {
		name, _, _ := strings.Cut(m.ID, "/")
		of[name] = append(of[name], m)
	}
	r := result{found: map[int]int{}, asked: map[int]int{}}
	one := func(name string) error {
		store, err := os.MkdirTemp(dir, "locomo")
		if err != nil {
			return err
		}
		defer os.RemoveAll(store)
		st, err := varve.Open(ctx, filepath.Join(store, "s"), nil)
		if err != nil {
			return err
		}
		defer st.Close()
		if err := st.Admin().UpdateConfig(ctx,
			func(c *varve.Config) error { c.TextLanguage = language; return nil }); err != nil {
			return err
		}
		if _, err := st.PutAll(ctx, slices.Values(of[name])); err != nil {
			return err
		}
		for i := range questions {
			if q := &questions[i]; q.conversation == name {
				if err := r.ask(ctx, st, q, byWords(q), top); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if err := one(name); err != nil {
			return err
		}
	}
	r.print("words", "of stores of their own", top)
	return nil
}

// result counts the questions for which a turn of the evidence was found, by category.
type result struct {
	found, asked map[int]int
	ranks        float64
	took         []time.Duration
}

func (r *result) ask(ctx context.Context, st *varve.Store, q *question, x varve.Query, top int,
	filters ...varve.Filter) error {
	if len(q.evidence) == 0 {
		return nil
	}
	x.Limit = top
	began := time.Now()
	hits, err := st.Search(ctx, x, filters...)
	r.took = append(r.took, time.Since(began))
	if err != nil {
		return fmt.Errorf("%q: %w", q.text, err)
	}
	r.asked[q.category]++
	if i := slices.IndexFunc(hits, func(h varve.Hit) bool { return q.evidence[h.ID] }); i >= 0 {
		r.found[q.category]++
		r.ranks += 1 / float64(i+1)
	}
	return nil
}

func (r *result) print(by, where string, top int) {
	total := 0
	for _, n := range r.found {
		total += n
	}
	n := len(r.took)
	if n == 0 {
		return
	}
	slices.Sort(r.took)
	fmt.Printf("by %s, %s: %d (%.1f %%) among the first %d, MRR %.3f; %.2f ms median, %.2f ms p99; by category", by, where,
		total,
		100*float64(total)/float64(n), top, r.ranks/float64(n), ms(r.took[n/2]), ms(r.took[n*99/100]))
	for _, c := range slices.Sorted(maps.Keys(r.asked)) {
		fmt.Printf(" %d: %d/%d", c, r.found[c], r.asked[c])
	}
	fmt.Println()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
