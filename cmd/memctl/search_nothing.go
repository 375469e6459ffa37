package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/words/query"
)

// remedied adds a remedy to an error of a query.
func remedied(err error) error {
	f := (*varve.FieldError)(nil)
	switch {
	case !errors.As(err, &f):
	case f.Field == "query Text" && f.Limit == "":
		return cli.WithFix(err,
			"give at least one word that must occur, made of letters, digits or emoji; memctl list lists all memories")
	case f.Field == "query Like":
		return cli.WithFix(err,
			"search by words, or compute the missing embeddings with an embedding service: memctl reindex --missing")
	}
	return err
}

var (
	oneWord = regexp.MustCompile(`^[\pL\pN]{2,}$`)
	member  = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)
	// begins matches the text after the colon in a word such as speaker:ann, where the word before the colon names a
	// field. begins does not match the text after the first colon of std::sort and https://…, so that std and https
	// are not taken for fields.
	begins = regexp.MustCompile(`^["\pL\pN]`)
)

// noMatchMessage returns the message for a search that found nothing: the likely reason, and another search that
// may find something, as far as they are known.
func (p *searched) noMatchMessage(ctx context.Context, q varve.Query, filters []varve.Filter) string {
	switch {
	case p.f.kind == string(varve.KindNote):
		if q.Vector != nil || q.Like != "" {
			return "no note found: notes can be found only by words"
		}
		return "no note found"
	case q.Offset > 0:
		return fmt.Sprintf("%s after the first %d", noMemory, q.Offset)
	case q.MinScore > 0:
		return fmt.Sprintf("%s with a score of %v or more", noMemory, q.MinScore)
	}
	why := p.f.noMatchMessage(ctx, p.st, filters)
	if why != noMemory || q.Text == "" {
		return why
	}
	for _, word := range strings.Fields(q.Text) {
		name, value, ok := strings.Cut(strings.TrimLeft(word, "+-"), ":")
		_, known := query.FieldNamed(strings.ToLower(name))
		switch {
		case !ok || known || !member.MatchString(name) || !begins.MatchString(value):
		case name == "session" || name == "session_id":
			return fmt.Sprintf("%s: %s: is not a field of a query; to select a session use --session %s", why, name,
				cli.ShellQuote(value))
		default:
			return fmt.Sprintf("%s: %s: is not a field of a query; to select by metadata use --where %s", why, name,
				cli.ShellQuote(name+"="+value))
		}
	}
	if oneWord.MatchString(q.Text) && q.Vector == nil {
		longer := varve.Query{Text: q.Text + "*", Limit: 1}
		if hits, err := p.st.Search(ctx, longer, filters...); err == nil && len(hits) > 0 {
			return fmt.Sprintf("%s with this word; to find words that begin with it: memctl search %s", why,
				cli.ShellQuote(longer.Text))
		}
	}
	return why
}
