package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Query is the placeholder for the text of a query in a template for queries.
const Query = "{query}"

// CheckQuery returns an error if a template for queries is invalid. A valid template is a text that contains {query}
// once, such as "search_query: {query}". It may have line breaks. An empty template means {query} alone.
func CheckQuery(s string) error {
	why := ""
	switch {
	case s == "":
		return nil
	case len(s) > Most:
		why = fmt.Sprintf("the template has %d bytes, but the limit is %d", len(s), Most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		why = "contains a character that cannot be displayed"
	case strings.Count(s, Query) != 1 || strings.ContainsAny(strings.Replace(s, Query, "", 1), "{}"):
		why = "must contain {query} once, and no other braces"
	default:
		return nil
	}
	return &errs.FieldError{Field: "query_template", Value: human.Quote(s),
		Limit: `{query}, or a text such as "search_query: {query}"`, Err: fmt.Errorf("%w: %s", errs.ErrInvalid, why)}
}

// Queries returns the texts to embed for queries: the template s with {query} replaced by each query.
func Queries(s string, texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		if all[i] = text; s != "" {
			before, after, _ := strings.Cut(s, Query)
			all[i] = before + text + after
		}
	}
	return all
}
