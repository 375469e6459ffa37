// Command memorystores uses anthropic-sdk-go to list the memories of a server of the Memory Stores API, such as
// memctl serve. A program for Anthropic's API needs only another URL and another key.
//
//	memctl serve token add laptop            prints the key
//	memctl serve --stores memories &
//	ANTHROPIC_API_KEY=varve_… go run . http://127.0.0.1:7717
//
// Its tests drive all methods of that client, and of the client for Node, against a server of this project.
//
// It is a module of its own, so that the library does not depend on a client of the API.
package main
