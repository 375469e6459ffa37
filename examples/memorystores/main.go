package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: memorystores URL; the key is in ANTHROPIC_API_KEY")
		os.Exit(2)
	}
	client := anthropic.NewClient(option.WithBaseURL(os.Args[1]))
	if err := list(context.Background(), client, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// list writes a line for each store, followed by a line for each memory of the store.
func list(ctx context.Context, client anthropic.Client, out io.Writer) error {
	stores := client.Beta.MemoryStores.ListAutoPaging(ctx, anthropic.BetaMemoryStoreListParams{})
	for stores.Next() {
		s := stores.Current()
		fmt.Fprintln(out, s.ID, s.Name)
		memories := client.Beta.MemoryStores.Memories.ListAutoPaging(ctx, s.ID, anthropic.BetaMemoryStoreMemoryListParams{})
		for memories.Next() {
			m := memories.Current()
			fmt.Fprintln(out, " ", m.ID, m.Path, m.ContentSizeBytes)
		}
		if err := memories.Err(); err != nil {
			return err
		}
	}
	return stores.Err()
}
