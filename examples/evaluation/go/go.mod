module example.org/kit

go 1.19
