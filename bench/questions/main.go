package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/tests/questions"
)

var (
	languages = flag.String("languages", "en,none,de", "values of text_language")
	order     = flag.Uint64("order", 1, "seed of the order of the memories")
	missed    = flag.Bool("missed", false, "print the questions whose answer is not found")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "questions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "questions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	memories, list := questions.Load(*order)
	fmt.Printf("%d memories, %d questions; found among the first %d, and MRR\n\n| | %s | all |\n|---|%s\n", len(memories),
		len(list), questions.Top,
		strings.Join(questions.Kinds, " | "), strings.Repeat("---:|", len(questions.Kinds)+1))
	if err := line("scan", list, questions.Scan(memories)); err != nil {
		return err
	}
	for _, language := range strings.Split(*languages, ",") {
		st, err := varve.Open(ctx, filepath.Join(dir, language), nil)
		if err != nil {
			return err
		}
		err = st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.TextLanguage = language; return nil })
		if err == nil {
			_, err = st.PutAll(ctx, slices.Values(memories))
		}
		if err == nil {
			err = st.Flush(ctx)
		}
		if err == nil {
			err = line("index, "+language, list, func(text string) (ids []string, err error) {
				hits, err := st.Search(ctx, varve.Query{Text: text, Limit: questions.Top})
				for _, h := range hits {
					ids = append(ids, h.ID)
				}
				return ids, err
			})
		}
		if cerr := st.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func line(name string, list []questions.Question, search func(string) ([]string, error)) error {
	figures, err := questions.Ask(list, search)
	if err != nil {
		return err
	}
	fmt.Printf("| %s |", name)
	for _, kind := range append(slices.Clone(questions.Kinds), "") {
		fmt.Printf(" %d, %.3f |", figures[kind].Found, figures[kind].MRR)
	}
	fmt.Println()
	if *missed {
		for _, q := range figures[""].Missed {
			fmt.Printf("  %s: %s\n", q.Answer, q.Text)
		}
	}
	return nil
}
