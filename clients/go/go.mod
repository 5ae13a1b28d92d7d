module idmint.internal/idmint

go 1.19
