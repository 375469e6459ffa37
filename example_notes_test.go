package varve_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memorytool"
)

// Notes are text files at paths. A model that has Anthropic's memory tool reads and writes them, too.
func ExampleStore_Notes() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "varve-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Notes().Write(ctx, "travel/rome.md", nil); err != nil {
		log.Fatal(err)
	}
	text := []byte("# Rome\n- trains\n")

	ns := st.Notes()
	n, err := ns.Read(ctx, "travel/rome.md")
	if err != nil {
		log.Fatal(err)
	}
	_, err = ns.Write(ctx, "travel/rome.md", text, varve.IfHash(n.ContentHash))
	if err != nil {
		log.Fatal(err)
	}
	_, err = ns.Edit(ctx, "travel/rome.md", "trains", "buses") // *MatchError unless it occurs once
	if err != nil {
		log.Fatal(err)
	}

	block := struct{ Input []byte }{[]byte(`{"command":"create","path":"/memories/a.md","file_text":"x"}`)}
	tool, err := memorytool.New(st.Notes(), memorytool.Options{Folder: "agents/ada"})
	if err != nil {
		log.Fatal(err)
	}
	result := tool.Call(ctx, block.Input) // the input of a tool_use block with the name memory
	fmt.Println(result.Text)
	for e, err := range ns.List(ctx, "", 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Path, e.Size)
	}
	// Output:
	// File created successfully at: /memories/a.md
	// agents/ada/a.md 1
	// travel/rome.md 15
}
