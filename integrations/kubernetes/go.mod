module leeward.dev/kubernetes

go 1.26
