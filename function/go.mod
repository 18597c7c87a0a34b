module framestorm.local/function

go 1.25.0
