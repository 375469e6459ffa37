package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Query is what stands for the text of a query in a query's template.
const Query = "{query}"

// CheckQuery says what is wrong with a template of queries: a text such as "search_query: {query}", which
// has {query} once. It may have line breaks. "" is {query} alone.
func CheckQuery(s string) error {
	why := ""
	switch {
	case s == "":
		return nil
	case len(s) > Most:
		why = fmt.Sprintf("it has %d bytes, the limit is %d", len(s), Most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		why = "it has a character that cannot be shown"
	case strings.Count(s, Query) != 1 || strings.ContainsAny(strings.Replace(s, Query, "", 1), "{}"):
		why = "it must have {query} once, and no other braces"
	default:
		return nil
	}
	return &errs.FieldError{Field: "query_template", Value: human.Quote(s),
		Limit: `{query}, or a text such as "search_query: {query}"`, Err: fmt.Errorf("%w: %s", errs.ErrInvalid, why)}
}

// Queries are the texts of queries as the template says that they are embedded.
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
