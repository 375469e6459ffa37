package offsite

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTableOfTests verifies that each test named in the table in remote/doc.go exists.
func TestTableOfTests(t *testing.T) {
	doc, err := os.ReadFile("../../remote/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../tests.list")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "# Bad input and bad luck")
	table, _, _ = strings.Cut(table, "# Assumptions")
	names := regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(table, -1)
	if len(names) < 30 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(string(list), " "+name+"\n") {
			t.Errorf("%s is no test", name)
		}
	}
}
