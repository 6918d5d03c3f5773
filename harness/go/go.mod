module rankbridge

go 1.19
